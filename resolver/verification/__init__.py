"""Verification: finds the checks of a project, executes them at the base commit and at the change,
and decides what their results show."""
