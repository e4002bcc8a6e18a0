"""Resolver: from a GitHub issue to a small, correct pull request."""

__version__ = "0.1.0"
