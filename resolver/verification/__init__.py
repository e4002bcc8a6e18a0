"""Verification: the checks that a run shows, and what they say about its change."""
