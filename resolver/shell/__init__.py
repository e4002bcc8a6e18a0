"""Shell text, read without running it: its commands, and what they are run by and for."""
