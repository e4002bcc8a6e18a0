"""Tests of the text of a review: inert, bounded, with exact suggestions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from resolver.github.comments.review import (
    remark_body,
    review_body,
    suggestion_block,
)
from resolver.github.comments.thread_replies import thread_reply
from resolver.github.text.comment_markdown import MAX_BODY, is_closed
from resolver.github.text.markdown import visible
from resolver.models.pull_request import Remark, Review, ReviewThread, ThreadReply, ThreadRequest
from resolver.trace.untrusted_text import utf16_length
from tests.github import reports
from tests.github.test_comment_markdown import active

HOSTILE = (
    "@octocat <img src=x onerror=alert(1)> </details><script>alert(1)</script>\n\n"
    "![x](https://evil.example/?d=1) [x](javascript:alert(1)) #99\n\n````\n```\n<!-- "
)


THREAD = ThreadRequest(label="T1", thread=ReviewThread(id="1", path="a.py", line=3))


def remark(**more: Any) -> Remark:
    return Remark(**{"path": "src/a.py", "line": 12, "body": "It rounds.", **more})


def body(*body_comments: Remark, message: str = "It halves.", **more: Any) -> str:
    report = reports.report(outcome=reports.outcome(message, **more))
    return review_body(report, Review(commit="a" * 40, body_comments=body_comments))


def fences(markdown: str) -> list[tuple[str, str]]:
    """Info and content of the fenced blocks, as GitHub's parser sees them."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(markdown)
    return [(token.info, token.content) for token in tokens if token.type == "fence"]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200))
def test_any_suggestion_is_exact_or_omitted(text: str) -> None:
    made = remark(suggestion=text)
    block = suggestion_block(made)
    if block is None:
        assert visible(text) != text
    else:
        assert fences(block) == [("suggestion", f"{text}\n")]


@pytest.mark.parametrize(
    "made",
    [
        remark(suggestion="a\u202eb"),
        remark(suggestion="x" * 30_000),
        remark(suggestion="x", side="LEFT"),
    ],
)
def test_a_suggestion_that_can_not_be_applied_is_shown_as_code(made: Remark) -> None:
    shown = remark_body(reports.report(), made)
    assert not any(info == "suggestion" for info, _ in fences(shown))
    assert "Proposed text" in shown
    assert "\u202e" not in shown


def test_text_of_a_model_can_not_form_a_suggestion() -> None:
    shown = remark_body(reports.report(), remark(body="```suggestion\nrm -rf /\n```"))
    assert fences(shown) == [("text", "rm -rf /\n")]


def test_a_long_review_fits_the_limit() -> None:
    many = [remark(path=f"f{n}.py", body="w " * 4_000, suggestion="x" * 9_000) for n in range(90)]
    text = body(*many, message="m " * 20_000, verification="v " * 9_000, remaining="r" * 9_000)
    assert utf16_length(text) <= MAX_BODY
    assert is_closed(text)
    assert "more, in the event log" in text
    long = remark_body(reports.report(), remark(body="w " * 50_000, suggestion="s\n" * 9_000))
    assert utf16_length(long) <= MAX_BODY


def test_a_hostile_review_is_only_text() -> None:
    hostile = {"body": HOSTILE, "suggestion": HOSTILE}
    for text in (
        body(
            remark(**hostile, path="<img src=x onerror=alert(1)>"),
            message=HOSTILE,
            verification=HOSTILE,
            remaining=HOSTILE,
        ),
        remark_body(reports.report(), remark(**hostile, severity="high")),
        remark_body(reports.report(), remark(**hostile, side="LEFT")),
        thread_reply(reports.report(), ThreadReply(thread=THREAD, text=HOSTILE), None),
    ):
        live = [part for part in active(text) if not part.startswith("<!-- resolver:")]
        assert live == [], text
