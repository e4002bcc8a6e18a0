"""The characters and sequences that are drawn as nothing, and two ways to treat them in a text.

A model reads what the people who review a text don't see: bidirectional controls, tag characters
and characters without width.
"""

import re

INVISIBLE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd"
    r"\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    r"\ud800-\udfff"
)
"""Controls, characters that are drawn as nothing or as blank space, and surrogates: the inside of
a character class of a regular expression.

Source: https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point. U+2800 is not among
those, but it is a Braille pattern without a dot.
"""

TERMINAL_SEQUENCE = (
    r"\x1b\][^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b\x9c\n]{0,4096}(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC: other strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]"
)
"""A regular expression of the control sequences of terminals (ECMA-48, section 5)."""

# https://www.unicode.org/reports/tr51/
_EMOJI = (
    r"[\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935"
    r"\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_EMOJI_OR_INVISIBLE = re.compile(
    rf"(?P<emoji>{_EMOJI}\ufe0f?(?:\u200d{_EMOJI}\ufe0f?)*|[0-9#*]\ufe0f(?=\u20e3))|[{INVISIBLE}]"
)


def without_invisible(text: str) -> str:
    """Return `text` without invisible characters. The function is idempotent.

    Line and paragraph separators become newlines; tabs, newlines and what emoji need are kept.
    """
    return _EMOJI_OR_INVISIBLE.sub(
        lambda match: match["emoji"] or "", re.sub("[\u2028\u2029]", "\n", text)
    )


def with_invisible_shown(text: str) -> str:
    """Return `text` with invisible characters written as code points, such as `[U+202E]`.

    This is for code, where they may matter. Tabs, newlines and what emoji need are kept.
    """
    return _EMOJI_OR_INVISIBLE.sub(lambda match: match["emoji"] or f"[U+{ord(match[0]):04X}]", text)
