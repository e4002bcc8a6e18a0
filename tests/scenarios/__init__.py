"""Whole stories on one repository, and what a person sees at their end, comment by comment."""
