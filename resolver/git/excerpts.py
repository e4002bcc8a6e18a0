"""Finds the code that a review thread is about.

It is taken from the pinned head if the lines still exist there, else from the diff as it was when
the thread was started.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from resolver.errors import WorkspaceError
from resolver.models.pull_request import AskedThread, PullRequestContext, ReviewThread

AROUND = 5
"""Number of lines shown before and after."""

MOST_LINES = 60
"""Maximum number of lines per thread. The last ones are kept, as comments refer to those."""

LONGEST_LINE = 300
"""Maximum number of characters of a line."""

_HEAD = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")

Read = Callable[[str], bytes | None]
"""Returns the content of a file at the pinned head. Raises WorkspaceError if it is too large."""

Show = Callable[[str], str]
"""Applied to the text of each line that is shown."""


def with_code(asked: AskedThread, pull: PullRequestContext, read: Read, show: Show) -> AskedThread:
    """Return the review thread with the lines that it is about.

    pull: the pull request at the pinned head. If it was pushed to since, the line numbers from
    GitHub may be those of a later commit, so the diff of the thread is used.
    """
    thread = asked.thread
    last = thread.line
    now = None
    if thread.side == "RIGHT" and not (thread.is_outdated or pull.moved) and last is not None:
        now = _at_head(thread.path, thread.start_line or last, last, read, show)
    code = _then(thread, show) if now is None else now
    named = thread.model_copy(update={"path": show(thread.path)})
    return asked.model_copy(update={"thread": named, "code": code, "is_then": now is None})


def _at_head(path: str, first: int, last: int, read: Read, show: Show) -> str | None:
    """Return the lines at the pinned head with some context, None if they don't exist there."""
    try:
        content = read(path)
    except WorkspaceError:
        return None
    if content is None or b"\0" in content:
        return None
    lines = content.decode("utf-8", "replace").split("\n")
    if last > len(lines):
        return None
    start = max(1, first - AROUND, last - MOST_LINES)
    end = min(len(lines), last + AROUND)
    shown = ((n, lines[n - 1], first <= n <= last) for n in range(start, end + 1))
    return "\n".join(_line(n, text, " ", marked, show) for n, text, marked in shown)


def _then(thread: ReviewThread, show: Show) -> str:
    """Return the end of the diff, up to the line that the thread was started on."""
    if not thread.hunk.strip():
        return ""
    shown: list[str] = []
    for number, sign, text in _numbered(thread):
        marked = number is not None and number == thread.original_line
        shown.append(_line(number, text, sign, marked, show))
        if marked:
            break
    return "\n".join(shown[-MOST_LINES:])


def _numbered(thread: ReviewThread) -> Iterator[tuple[int | None, str, str]]:
    """Yield the number, sign and text of each line.

    The number is that of the file version that the thread is about, None for a line of the other
    version.
    """
    lines = thread.hunk.split("\n")
    other = "+" if thread.side == "LEFT" else "-"
    heads = [n for n, line in enumerate(lines) if _HEAD.match(line)]
    if heads:
        yield from _after_heads(lines[heads[0] :], other)
        return
    # GitHub has cut off the beginning of the diff, its `@@` line included. Its last line is the one
    # that the thread is about, so the lines are numbered backwards from there.
    number = (thread.original_line or 0) - sum(line[:1] != other for line in lines) + 1
    for line in lines:
        is_other = line[:1] == other
        yield None if is_other else number, line[:1] or " ", line[1:]
        number += not is_other


def _after_heads(lines: Sequence[str], other: str) -> Iterator[tuple[int | None, str, str]]:
    number = 0
    for line in lines:
        found = _HEAD.match(line)
        if found is not None:
            number = int(found[1] if other == "+" else found[2])
        elif line[:1] in {" ", "+", "-"}:
            is_other = line[:1] == other
            yield None if is_other else number, line[:1], line[1:]
            number += not is_other


def _line(number: int | None, text: str, sign: str, marked: bool, show: Show) -> str:
    cut = show(text.removesuffix("\r")[:LONGEST_LINE])
    return f"{'>' if marked else ' '}{'' if number is None else number:>6} {sign}{cut}"
