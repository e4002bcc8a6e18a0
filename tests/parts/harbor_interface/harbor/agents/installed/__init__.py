"""Agents that are installed in the container."""
