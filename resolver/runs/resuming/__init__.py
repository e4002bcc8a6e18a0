"""Resumes runs from their event logs: continuation, re-execution and the archive of logs."""
