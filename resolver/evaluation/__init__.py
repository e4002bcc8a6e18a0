"""Measures agents on tasks with known answers: suites, their runs, scores and reports."""
