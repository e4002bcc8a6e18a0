"""Redaction: the second line behind keeping secrets out of reach."""
