"""Removes invisible characters from text that a person or a model reads, or makes them visible.

Such text is read by a model and not seen by the people who review it: bidirectional controls, tag
characters and characters without width.
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
"""Controls, characters that are drawn as nothing or as blank space, and surrogates.

Source: https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point. U+2800 is not among
those, but it is a Braille pattern without a dot.
"""

_EMOJI = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf"
    "\u2934\u2935\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
"""Characters that may be parts of emoji: https://www.unicode.org/reports/tr51/"""

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
    characters: list[str] = []
    for position, character in enumerate(text):
        if not is_invisible(character) or _belongs_to_emoji(character, characters, text, position):
            characters.append(character)
    return "".join(characters)


def with_invisible_shown(text: str) -> str:
    """Return `text` with invisible characters written as code points, such as `[U+202E]`.

    This is for code, where they may matter. Tabs, newlines and what emoji need are kept.
    """
    if text.isascii() and not _INVISIBLE.search(text):
        return text
    characters: list[str] = []
    for position, character in enumerate(text):
        is_emoji_part = is_invisible(character) and _belongs_to_emoji(
            character, characters, text, position
        )
        is_hidden = is_invisible(character) and not is_emoji_part
        characters.append(f"[U+{ord(character):04X}]" if is_hidden else character)
    return "".join(characters)


def _belongs_to_emoji(character: str, preceding: list[str], text: str, position: int) -> bool:
    if character == _VARIATION:
        return bool(preceding) and _takes_variation(preceding[-1], text, position)
    return character == _JOINER and _joins_emoji(preceding, text, position)


def _takes_variation(previous: str, text: str, position: int) -> bool:
    is_keycap = previous in "0123456789#*" and text[position + 1 : position + 2] == "\u20e3"
    return is_keycap or bool(_EMOJI.match(previous))


def _joins_emoji(preceding: list[str], text: str, position: int) -> bool:
    following = text[position + 1 : position + 2]
    if not preceding or not following or not _EMOJI.match(following):
        return False
    previous = (
        preceding[-2] if preceding[-1] == _VARIATION and len(preceding) > 1 else preceding[-1]
    )
    return bool(_EMOJI.match(previous))
