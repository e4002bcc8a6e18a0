"""Decides whether a text asks for a skill.

A trigger matches whole words, in any case; the words of a phrase may be separated by any white
space. Letters of other scripts count as word boundaries, since many don't separate words by spaces:
`docker` matches in `dockerの設定`.
"""

import re
from functools import cache


def find_trigger(trigger: str, text: str) -> str | None:
    """Return the first match of the trigger as the text spells it, or None."""
    match = _trigger_pattern(trigger).search(text)
    return " ".join(match[0].split()) if match else None


@cache
def _trigger_pattern(trigger: str) -> re.Pattern[str]:
    words = r"\s+".join(re.escape(word) for word in trigger.split())
    return re.compile(rf"(?<![A-Za-z0-9_]){words}(?![A-Za-z0-9_])", re.IGNORECASE)
