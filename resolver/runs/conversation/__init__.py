"""Conversation of a run with people: progress and final comments, commands and confirmations."""
