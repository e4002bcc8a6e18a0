"""Verification: the checks that a run's log shows, and what they say about its change."""
