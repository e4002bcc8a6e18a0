"""Cleans text that others wrote, and escapes text that Resolver quotes."""
