"""Whole stories on one repository, and the comments that people see at their end."""
