"""Renders an event log for a GitHub comment, a browser, a terminal or a program."""
