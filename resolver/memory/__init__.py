"""Builds what a model reads from the event log: messages, condensation, skills and notes."""
