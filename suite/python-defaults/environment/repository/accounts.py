"""Settings of accounts."""

DEFAULTS = {"theme": "light", "rows": 20}


def settings(changes=None):
    """Return the default settings with changes."""
    result = DEFAULTS
    result.update(changes or {})
    return result
