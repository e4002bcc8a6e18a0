"""Tests of building a review: comments on lines, repeated comments, and comments left out."""

from typing import Any

import pytest

from resolver.events import actions as a
from resolver.events.observations import ReviewCommentNoted
from resolver.models.pull_request import (
    AuthoredText,
    DiffFile,
    DiffHunk,
    PullRequestContext,
    Remark,
    ReviewThread,
)
from resolver.publishing.review import (
    place_remarks,
    review_remarks,
)
from resolver.publishing.review_comments import readable_pull_request, review_comment_handler
from tests.github.reports import WHEN

FILE = DiffFile(
    path="a.py",
    status="modified",
    hunks=(
        DiffHunk(old_start=5, old_lines=7, new_start=5, new_lines=8),
        DiffHunk(old_start=40, old_lines=3, new_start=41, new_lines=3),
    ),
)


def pull(*threads: ReviewThread) -> PullRequestContext:
    return PullRequestContext(
        number=7, head="a" * 40, base_branch="main", files=(FILE,), threads=threads
    )


def remark(line: int = 6, body: str = "This rounds down.", **more: Any) -> Remark:
    return Remark(path=more.pop("path", "a.py"), line=line, body=body, **more)


def thread(author: str, body: str, line: int | None = 6, **more: Any) -> ReviewThread:
    words = AuthoredText(id=1, author=author, at=WHEN, body=body)
    return ReviewThread(id="t", path="a.py", line=line, comments=(words,), **more)


def review(
    *made: Remark,
    of: PullRequestContext | None = None,
    **limits: Any,
) -> Any:
    return place_remarks(list(made), of or pull(), "bot", **limits)


@pytest.mark.parametrize(
    ("made", "placed"),
    [
        (remark(5), True),
        (remark(13), False),
        (remark(12, start_line=5), True),
        (remark(12, start_line=4), False),
        (remark(42, start_line=12), False),
        (remark(11, side="LEFT"), True),
        (remark(12, side="LEFT"), False),
        (remark(5, path="b.py"), False),
    ],
)
def test_a_comment_is_on_its_lines_only_within_one_hunk(made: Remark, placed: bool) -> None:
    found = review(made)
    assert bool(found.inline_comments) == placed
    assert bool(found.body_comments) != placed
    noted = review_comment_handler(pull())(
        a.ReviewComment(
            path=made.path, line=made.line, start_line=made.start_line, side=made.side, body="x"
        )
    )
    assert isinstance(noted, ReviewCommentNoted)
    assert noted.placed == placed


MOVED = DiffFile(
    path="new.py",
    old_path="old.py",
    status="renamed",
    hunks=(DiffHunk(old_start=5, old_lines=3, new_start=6, new_lines=3),),
)
GONE = DiffFile(
    path="gone.py",
    status="deleted",
    hunks=(DiffHunk(old_start=1, old_lines=2, new_start=0, new_lines=0),),
)


@pytest.mark.parametrize(
    ("made", "place"),
    [
        (remark(5, path="old.py", side="LEFT"), ("new.py", "LEFT")),
        (remark(6, path="old.py"), ("new.py", "RIGHT")),
        (remark(2, path="gone.py"), ("gone.py", "LEFT")),
    ],
)
def test_a_comment_on_a_moved_or_deleted_file_is_where_the_diff_has_it(
    made: Remark, place: tuple[str, str]
) -> None:
    diff = PullRequestContext(number=7, head="a" * 40, base_branch="main", files=(MOVED, GONE))
    [placed] = review(made, of=diff).inline_comments
    assert (placed.path, placed.side) == place
    noted = review_comment_handler(diff)(
        a.ReviewComment(path=made.path, line=made.line, side=made.side, body="x")
    )
    assert noted.content == f"Noted for {placed.place}."


@pytest.mark.parametrize(
    ("said", "repeated"),
    [
        (thread("bot", "something else entirely"), True),
        (thread("eve", "This rounds down."), False),
        (thread("bot", "This rounds down.", line=9), False),
        (thread("bot", "This rounds down.", is_resolved=True), False),
        (thread("bot", "This rounds down.", line=None, is_outdated=True), False),
        (thread("bot", "This rounds down.", side="LEFT"), False),
    ],
)
def test_what_an_open_conversation_says_is_left_out(said: ReviewThread, repeated: bool) -> None:
    found = review(remark(), of=pull(said))
    assert (found.repeated, len(found.inline_comments)) == (int(repeated), int(not repeated))


def test_the_most_important_come_first_and_the_rest_is_counted() -> None:
    made = (remark(5, severity="low"), remark(6), remark(7, severity="high"))
    found = review(*made, max_comments=2)
    assert [r.line for r in found.inline_comments] == [7, 6]
    assert found.left_out == 1


def comment(line: int, body: str = "x") -> a.ReviewComment:
    return a.ReviewComment(path="a.py", line=line, body=body)


def test_what_an_earlier_review_was_ended_with_is_not_said_again() -> None:
    log = [comment(5), a.Finish(message="done"), comment(6), a.Finish(message="done again")]
    assert [r.line for r in review_remarks(log)] == [6]
    assert [r.line for r in review_remarks(log[:2])] == [5]
    assert review_remarks([*log[:2], log[3]]) == []


def test_names_that_people_gave_hide_nothing_either() -> None:
    said = thread("eve", "x").model_copy(update={"path": "a\u202ey.py"})
    seen = readable_pull_request(pull(said).model_copy(update={"head_branch": "fix\u200b"}))
    assert (seen.head_branch, seen.threads[0].path) == ("fix[U+200B]", "a[U+202E]y.py")
