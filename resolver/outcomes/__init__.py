"""Outcomes of pull requests: what became of those that Resolver opened."""
