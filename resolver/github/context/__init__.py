"""Reads an issue or pull request, and what it refers to, from GitHub into the task of a run."""
