"""Tests of the code excerpt of a review thread, as it is now or was at its start."""

from typing import Any

import pytest

from resolver.git.pull_request import (
    CONTEXT_LINES,
    MAX_EXCERPT_LINE_CHARACTERS,
    MAX_EXCERPT_LINES,
    with_code,
)
from resolver.models.pull_request import PullRequestContext, ReviewThread, ThreadRequest
from resolver.security.invisible_text import with_invisible_shown

FILE = "".join(f"line {n}\n" for n in range(1, 101)).encode()
HUNK = "@@ -8,4 +8,5 @@ def f():\n line 8\n-line 9\n+line nine\n+line ten"


def thread_with_code(
    content: bytes | None = FILE, moved: str = "", **changes: Any
) -> ThreadRequest:
    values = {"id": "x", "path": "a.py", "line": 30, "original_line": 10, "hunk": HUNK}
    asked = ThreadRequest(label="T1", thread=ReviewThread(**{**values, **changes}))
    pull = PullRequestContext(number=1, head="a" * 40, base_branch="main", moved=moved)
    return with_code(asked, pull, lambda path: content, with_invisible_shown)


def test_lines_are_shown_with_context() -> None:
    found = thread_with_code(start_line=28)
    lines = found.code.split("\n")
    assert [line for line in lines if line.startswith(">")] == [
        f">    {n}  line {n}" for n in (28, 29, 30)
    ]
    assert (lines[0].split()[0], lines[-1].split()[0]) == (
        str(28 - CONTEXT_LINES),
        str(30 + CONTEXT_LINES),
    )
    assert (found.is_then, found.place) == (False, "a.py:30")


@pytest.mark.parametrize(
    "changes",
    [
        {"is_outdated": True, "line": None},
        {"moved": "pushed to since"},
        {"content": None},
        {"content": b"\0"},
        {"content": b"short\n"},
    ],
)
def test_moved_lines_are_shown_as_when_the_thread_was_started(
    changes: dict[str, Any],
) -> None:
    found = thread_with_code(**changes)
    assert found.code == HUNK
    assert (found.is_then, found.place) == (True, "a.py:10")


def test_hidden_characters_are_made_visible() -> None:
    found = thread_with_code("x\u202ey\n".encode() * 40, path="a\u200b.py")
    assert "[U+202E]" in found.code
    assert found.thread.path == "a[U+200B].py"


def test_of_a_long_diff_the_last_lines_are_shown() -> None:
    """GitHub's diff ends with the line that the thread was started on."""
    lines = [f"+{n} {'x' * 400}" for n in range(100)]
    found = thread_with_code(hunk="\r\n".join(lines), is_outdated=True).code.split("\n")
    assert found == [line[:MAX_EXCERPT_LINE_CHARACTERS] for line in lines[-MAX_EXCERPT_LINES:]]
