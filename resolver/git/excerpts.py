"""The code that a conversation on lines is about: at the pinned head where its lines still are,
else as the diff had it when the conversation began.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from resolver.errors import WorkspaceError
from resolver.models.pull_request import AskedThread, PullRequestContext, ReviewThread

AROUND = 5
"""Lines before and after."""

MOST_LINES = 60
"""Of one conversation; of more the last ones, which it stands below."""

LONGEST_LINE = 300

_HEAD = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")

Read = Callable[[str], bytes | None]
"""Content of a file at the pinned head. Raises WorkspaceError when it is too large."""

Show = Callable[[str], str]
"""How a line's text is written."""


def with_code(asked: AskedThread, pull: PullRequestContext, read: Read, show: Show) -> AskedThread:
    """The conversation with the lines that it is about.

    pull: at the pinned head. Where it was pushed to since, the lines that the forge names may be
    those of a later commit.
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
    """The end of the diff that the conversation was begun below."""
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
    """Number in the file of the conversation's side (None for a line of the other one), sign and
    text of each line."""
    lines = thread.hunk.split("\n")
    other = "+" if thread.side == "LEFT" else "-"
    heads = [n for n, line in enumerate(lines) if _HEAD.match(line)]
    if heads:
        yield from _after_heads(lines[heads[0] :], other)
        return
    # Its beginning is cut off. It ends with the line that the conversation is about.
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
