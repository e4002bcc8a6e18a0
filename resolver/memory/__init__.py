"""From the event log to what a model reads: messages, condensation, repository instructions."""
