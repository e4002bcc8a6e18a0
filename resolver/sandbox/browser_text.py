"""Makes text of a page fit to be shown: one line, visible characters only, limited length."""

import re
from typing import Final

_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ue000-\uf8ff\U000e0000-\U000e0fff"
    "\ud800-\udfff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
"""Characters that a person does not see: controls, directions, tags, fillers, private use."""


def plain_text(text: str, max_length: int) -> str:
    """Return the text as one line of at most `max_length` characters, without invisible ones."""
    if len(text) <= max_length and text.isascii() and text.isprintable():
        return " ".join(text.split())  # nothing is invisible: most texts of a page are like this
    # A page may have megabytes in one text: characters that would be cut off are not processed.
    line = " ".join(_INVISIBLE.sub("", text[: 4 * max_length + 100]).split())
    return (
        line
        if len(line) <= max_length and len(text) <= 4 * max_length + 100
        else line[: max_length - 1] + "…"
    )


def short_url(url: str) -> str:
    """Return a URL for display: a data: URL without its data, any other one truncated."""
    shown = plain_text(url, 300)
    if shown[:5].lower() == "data:":
        return f"{shown.partition(',')[0][:60]},…"
    return shown
