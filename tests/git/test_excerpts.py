"""Tests of the code excerpt of a review thread."""

from typing import Any

import pytest

from resolver.git.pull_request import (
    MAX_EXCERPT_LINE_CHARACTERS,
    MAX_EXCERPT_LINES,
    with_code,
)
from resolver.models.pull_request import PullRequestContext, ReviewThread, ThreadRequest
from resolver.security.invisible_text import with_invisible_shown

HUNK = "@@ -8,4 +8,5 @@ def f():\n line 8\n-line 9\n+line nine\n+line ten"


def thread_with_code(moved: str = "", **changes: Any) -> ThreadRequest:
    values = {"id": "x", "path": "a.py", "line": 30, "original_line": 10, "hunk": HUNK}
    asked = ThreadRequest(label="T1", thread=ReviewThread(**{**values, **changes}))
    pull = PullRequestContext(number=1, head="a" * 40, base_branch="main", moved=moved)
    return with_code(asked, pull, with_invisible_shown)


@pytest.mark.parametrize(
    ("changes", "is_then", "place"),
    [
        ({}, False, "a.py:30"),
        ({"is_outdated": True, "line": None}, True, "a.py:10"),
        ({"moved": "pushed to since"}, True, "a.py:10"),
    ],
)
def test_the_code_is_the_diff_that_the_thread_was_started_on(
    changes: dict[str, Any], is_then: bool, place: str
) -> None:
    found = thread_with_code(**changes)
    assert (found.code, found.is_then, found.place) == (HUNK, is_then, place)


def test_of_a_long_diff_the_last_lines_are_shown() -> None:
    """GitHub's diff ends with the line that the thread was started on."""
    lines = [f"+{n} {'x' * 400}" for n in range(100)]
    found = thread_with_code(hunk="\r\n".join(lines)).code.split("\n")
    assert found == [line[:MAX_EXCERPT_LINE_CHARACTERS] for line in lines[-MAX_EXCERPT_LINES:]]
