"""From a GitHub event to a Trigger; who may start what."""
