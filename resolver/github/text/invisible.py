"""Detects and removes invisible characters.

Zero-width joiners and the emoji variation selector are kept where an emoji needs them.
"""

import re
import unicodedata

_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff"
    "]"
)
_EMOJI = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf"
    "\u2934\u2935\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_VARIATION = "\ufe0f"
_JOINER = "\u200d"


def is_invisible(character: str) -> bool:
    """Return True for an invisible character, including those that join emoji."""
    return bool(_INVISIBLE.match(character)) or unicodedata.category(character) == "Cf"


def without_invisible(text: str) -> str:
    """Return `text` without invisible characters. The function is idempotent.

    Line and paragraph separators become newlines; tabs, newlines and what emoji need are kept.
    """
    text = text.replace("\u2028", "\n").replace("\u2029", "\n")
    if text.isascii() and not _INVISIBLE.search(text):
        return text
    kept: list[str] = []
    for position, character in enumerate(text):
        if not is_invisible(character) or _holds_emoji(character, kept, text, position):
            kept.append(character)
    return "".join(kept)


def with_invisible_shown(text: str) -> str:
    """Return `text` with invisible characters written as code points, such as `[U+202E]`.

    This is for code, where they may matter. Tabs, newlines and what emoji need are kept.
    """
    if text.isascii() and not _INVISIBLE.search(text):
        return text
    shown: list[str] = []
    for position, character in enumerate(text):
        glue = is_invisible(character) and _holds_emoji(character, shown, text, position)
        hidden = is_invisible(character) and not glue
        shown.append(f"[U+{ord(character):04X}]" if hidden else character)
    return "".join(shown)


def _holds_emoji(character: str, kept: list[str], text: str, position: int) -> bool:
    if character == _VARIATION:
        return bool(kept) and _takes_variation(kept[-1], text, position)
    return character == _JOINER and _joins_emoji(kept, text, position)


def _takes_variation(before: str, text: str, position: int) -> bool:
    keycap = before in "0123456789#*" and text[position + 1 : position + 2] == "\u20e3"
    return keycap or bool(_EMOJI.match(before))


def _joins_emoji(kept: list[str], text: str, position: int) -> bool:
    after = text[position + 1 : position + 2]
    if not kept or not after or not _EMOJI.match(after):
        return False
    before = kept[-2] if kept[-1] == _VARIATION and len(kept) > 1 else kept[-1]
    return bool(_EMOJI.match(before))
