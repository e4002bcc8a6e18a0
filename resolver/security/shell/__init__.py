"""Parses shell text, and derives from it which checks a command runs and which paths it writes.
Nothing is executed."""
