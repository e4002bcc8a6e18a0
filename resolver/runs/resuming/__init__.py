"""Resuming a run from its event log: continuation, re-execution and the log archive."""
