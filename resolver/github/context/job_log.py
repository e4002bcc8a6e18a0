"""Shortens the log of a CI job to the lines that show why it failed.

The content of a log comes from the project's tools and the code they ran. Like the text of an
issue, it is data and never an instruction.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from resolver.github.text.escape import visible

MOST_LINE = 400
"""Maximum number of characters of a line."""

TAIL = 80
"""Number of lines before the last error that are kept."""

AROUND = 2
"""Number of lines that are kept before and after each earlier error."""

_STAMP = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z ?")
_ENDED = "##[error]"
_MARK = re.compile(
    r"##\[error\]|::error|\berror(?:\[\w+\])?:|\bfatal:|\bpanic(?:ked)?\b|\bTraceback\b"
    r"|\bFAIL(?:ED|URE)?\b|\bnot ok\b|\bnpm ERR!|\bnpm error\b|^E   |[\u2717\u2718\u274c]"
    r"|\b\w{1,60}(?:Error|Exception)\b",
    re.IGNORECASE,
)


def cut_log(text: str, room: int, hide: Callable[[str], str] = str) -> str:
    """Return the lines about the failure: up to the last error, and around earlier errors.

    The result has at most `room` characters, with a note for each part that is left out.
    Timestamps, colors, overwritten progress output and invisible characters are removed.

    hide: removes what must not be shown. It is applied to the whole text before anything is cut,
    because a part of a secret can't be recognized by its format.
    """
    lines = _lines(hide("\n".join(map(_shown, text.split("\n")))))
    marked = [n for n, line in enumerate(lines) if _MARK.search(line)]
    ended = [n for n in marked if _ENDED in lines[n]]
    # Only clean-up steps follow the error message of the runner itself.
    end = (ended[-1] if ended else len(lines) - 1) + 1
    for tail, errors in ((TAIL, 30), (TAIL // 2, 12), (TAIL // 4, 4), (5, 0)):
        kept = set(range(max(0, end - tail), end))
        for number in _first_and_last([n for n in marked if n < end], errors):
            kept.update(range(max(0, number - AROUND), min(end, number + AROUND + 1)))
        told = _told(lines, sorted(kept))
        if len(told) <= room:
            return told
    return told[-room:] if room > 0 else ""


def _shown(raw: str) -> str:
    bare = _STAMP.sub("", raw.rstrip("\r"))
    return visible(bare.rpartition("\r")[2]).rstrip()


def _lines(text: str) -> list[str]:
    """Return the lines, long ones truncated, repeated ones once with the number of times."""
    lines: list[str] = []
    times = 1
    for whole in text.split("\n"):
        line = whole if len(whole) <= MOST_LINE else f"{whole[:MOST_LINE]} [...]"
        if lines and line == lines[-1]:
            times += 1
            continue
        if times > 1 and lines[-1]:
            lines.append(f"[the same line {times} times]")
        times = 1
        lines.append(line)
    if times > 1 and lines[-1]:
        lines.append(f"[the same line {times} times]")
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _first_and_last(numbers: Sequence[int], most: int) -> Iterable[int]:
    """Return the first and last numbers: the first errors are causes, the last ones the summary."""
    if len(numbers) <= most:
        return numbers
    half = most // 2
    return [*numbers[:half], *numbers[len(numbers) - half :]]


def _told(lines: Sequence[str], kept: Sequence[int]) -> str:
    told: list[str] = []
    before = -1
    for number in kept:
        if number > before + 1:
            missing = number - before - 1
            told.append(f"[... {missing} line{'' if missing == 1 else 's'} left out ...]")
        told.append(lines[number])
        before = number
    return "\n".join(told)
