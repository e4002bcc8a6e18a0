"""The step loop: limits, stuck detection, replay check, and how a run ends."""
