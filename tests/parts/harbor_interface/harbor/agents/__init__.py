"""Agents of Harbor."""
