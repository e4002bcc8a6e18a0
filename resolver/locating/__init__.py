"""Finds places in a repository: what is defined in it, what uses what, where words stand."""
