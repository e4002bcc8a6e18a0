"""Keeps the colours of terminal output: SGR sequences become named styles, all others are removed.

See https://www.ecma-international.org/publications-and-standards/standards/ecma-48/, section
8.3.117. The result holds clean text and names from a fixed list, nothing else of the sequences.
"""

import re
from dataclasses import dataclass

from resolver.trace.plain import clean

MAX_STYLED_PARTS = 4_000
"""Maximum number of parts with a style of their own; a text with more is shown without colours."""

_SGR = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]{0,64})m")
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_STYLES = {1: "bold", 2: "faint", 3: "italic", 4: "underline"}
_RESETS = {22: ("bold", "faint"), 23: ("italic",), 24: ("underline",)}


@dataclass(frozen=True)
class StyledText:
    """A part of a text. styles: such as `bold` or `red`, each from a fixed list of names."""

    text: str
    styles: tuple[str, ...]


def split_styles(text: str) -> tuple[StyledText, ...]:
    """Return the cleaned parts of a terminal's output with their styles.

    The result is empty if there are no styles, or too many.
    """
    pieces = _SGR.split(text, maxsplit=MAX_STYLED_PARTS + 1)
    if not 3 <= len(pieces) <= 2 * MAX_STYLED_PARTS:
        return ()
    parts, styles, colour = [StyledText(clean(pieces[0]), ())], set[str](), ""
    for codes, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        colour = _apply(codes, styles, colour)
        if cleaned := clean(piece):
            parts.append(StyledText(cleaned, (*sorted(styles), *filter(None, [colour]))))
    return tuple(parts) if any(part.styles for part in parts) else ()


def _apply(codes: str, styles: set[str], colour: str) -> str:
    """Apply the parameters of one sequence to `styles`, and return the colour from then on."""
    numbers = [int(code or 0) for code in re.split("[;:]", codes) if len(code) < 4]
    while numbers:
        number = numbers.pop(0)
        if number == 0:
            styles.clear()
            colour = ""
        elif number in _STYLES:
            styles.add(_STYLES[number])
        elif number in _RESETS:
            styles.difference_update(_RESETS[number])
        elif 30 <= number <= 37 or 90 <= number <= 97:
            colour = _COLOURS[number % 10]
        elif number == 39:
            colour = ""
        elif number in (38, 48):
            # An extended colour: 5 and an index, or 2 and three components.
            form = numbers.pop(0) if numbers else 0
            values = [numbers.pop(0) for _ in range({5: 1, 2: 3}.get(form, 0)) if numbers]
            if number == 38:
                colour = _COLOURS[values[0] % 8] if form == 5 and values and values[0] < 16 else ""
    return colour
