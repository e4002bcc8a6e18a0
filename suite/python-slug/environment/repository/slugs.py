"""Makes names for addresses."""

import re


def slug(title):
    """Return the title in lower case with hyphens."""
    return re.sub(r"[^a-z0-9]", "-", title.lower())
