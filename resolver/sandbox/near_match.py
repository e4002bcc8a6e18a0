"""Finds the lines of a file most similar to a text that was not found in it.

This tells the agent how the text differs.
"""

import difflib
from typing import Final

from .textfile import numbered

MAX_COMPARED: Final = 4_000
"""Number of lines that are compared by similarity. Equal lines are searched in the whole file."""

MAX_SHOWN: Final = 12
MAX_WIDTH: Final = 300
LIKE_ENOUGH: Final = 0.6


def nearest(lines: list[str], wanted: str) -> str:
    """Return a sentence with the most similar lines, or one that says there are none."""
    pieces = [piece.removesuffix("\r") for piece in wanted.split("\n")]
    if len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    offset = next((at for at, piece in enumerate(pieces) if piece.strip()), 0)
    key = pieces[offset].strip()
    starts = [at - offset for at, line in enumerate(lines) if line.strip() == key]
    starts = starts or [at - offset for at in _alike(lines[:MAX_COMPARED], key)]
    starts = [max(0, at) for at in starts[:50]]
    if not starts:
        return " Nothing in it is like it: view the file."
    best = max(starts, key=lambda at: _likeness(lines[at : at + len(pieces)], pieces))
    found = lines[best : best + len(pieces)]
    # The most frequent reason, which is hard to see in the lines themselves: indentation.
    spaces = [line.split() for line in found] == [piece.split() for piece in pieces]
    why = " They differ in white space only." if spaces else ""
    shown = numbered([line[:MAX_WIDTH] for line in found[:MAX_SHOWN]], best + 1)
    return f" The nearest lines are:\n{shown}\n{why}".rstrip()


def _alike(lines: list[str], key: str) -> list[int]:
    """Return the indexes of at most ten lines that are similar to `key`, the most similar first."""
    matcher = difflib.SequenceMatcher(None, "", key[:MAX_WIDTH])
    scores = []
    for at, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:MAX_WIDTH])
        quick = matcher.real_quick_ratio() > LIKE_ENOUGH and matcher.quick_ratio() > LIKE_ENOUGH
        if quick and (score := matcher.ratio()) > LIKE_ENOUGH:
            scores.append((score, -at))
    return [-at for _, at in sorted(scores, reverse=True)[:10]]


def _likeness(found: list[str], pieces: list[str]) -> float:
    return difflib.SequenceMatcher(None, "\n".join(found)[:2000], "\n".join(pieces)[:2000]).ratio()
