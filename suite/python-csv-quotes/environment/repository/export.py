"""Writes rows as CSV."""


def line(fields):
    """Return one row."""
    return ",".join(field for field in fields)


def quoted(field):
    """Return a field in quotes."""
    return '"' + field.replace('"', '""') + '"'
