"""The words of a review: its body, and a comment on lines with its suggestion.

Everything that the model wrote is made inert. A suggestion is the one thing that must stay as it
was, letter by letter: where it can't, it is shown as code that nobody takes with a click.
"""

from typing import Any
from urllib.parse import quote

from resolver.config.templates import render
from resolver.github.comments.markers import review_marker
from resolver.github.comments.report import Report
from resolver.github.text.escape import code_span, fence, shorten_text, visible
from resolver.github.text.fit import MAX_BODY
from resolver.github.text.safe_markdown import safe_markdown
from resolver.models.pull_request import Remark, Review, ReviewVerdict
from resolver.trace.markdown import utf16_length

LONGEST_REMARK = 8_000
"""UTF-16 units of one comment's words."""

LONGEST_SUGGESTION = 20_000
"""Characters; a longer one is no suggestion to take with a click."""

_ROOM = ((12_000, 4_000, 60), (6_000, 1_200, 40), (3_000, 400, 20))
"""Bounds to try in turn: of the summary, of each comment beside the diff, and of their number."""


def review_body(report: Report, review: Review, page: str, refused: int = 0) -> str:
    """The text of the review as a whole, at most 65,536 characters.

    page: URL under which the pinned commit's files are shown. refused: how many of the comments
    beside the diff are there because the forge did not take their lines.
    """
    outcome = report.outcome
    number = report.trigger.number
    for summary, remark, most in _ROOM:
        values: dict[str, Any] = {
            "marker": review_marker(report.trigger.key),
            "summary": safe_markdown(
                outcome.message if outcome else "", own_issue=number, limit=summary
            ),
            "verification": _section(outcome.verification if outcome else "", number, remark),
            "remaining": _section(outcome.remaining if outcome else "", number, remark),
            "beside": [_beside(each, page, number, remark) for each in review.beside[:most]],
            "more": max(0, len(review.beside) - most),
            "placed": len(review.placed),
            "refused": refused,
            "repeated": review.repeated,
            "left_out": review.left_out,
            "commit": code_span(review.commit[:12]),
            "verdict": review.verdict.value,
            "comments_only": review.verdict is ReviewVerdict.COMMENT,
        }
        text = render("comments/review_body.md.j2", **values).strip() + "\n"
        if utf16_length(text) <= MAX_BODY:
            break
    return text


def remark_body(remark: Remark, number: int | None) -> str:
    """The text of a comment on lines of the diff."""
    words = safe_markdown(remark.body, own_issue=number, limit=LONGEST_REMARK)
    return render(
        "comments/review_comment.md.j2",
        words=words,
        severity=remark.severity,
        suggestion=suggestion_block(remark),
        code=_as_code(remark),
    ).strip()


def can_be_taken(remark: Remark) -> bool:
    """Whether the suggestion can be shown exactly as it is, where the forge would apply it."""
    text = remark.suggestion
    return (
        text is not None
        and remark.side == "RIGHT"
        and len(text) <= LONGEST_SUGGESTION
        and visible(text) == text
    )


def suggestion_block(remark: Remark) -> str:
    """The suggestion as the forge takes it, "" where there is none: a fence that nothing in it can
    close, and every line as it is."""
    if remark.suggestion is None or not can_be_taken(remark):
        return ""
    ticks = "`" * max(3, _longest_run(remark.suggestion) + 1)
    return f"{ticks}suggestion\n{remark.suggestion}\n{ticks}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def _as_code(remark: Remark) -> str:
    if remark.suggestion is None or can_be_taken(remark):
        return ""
    return fence(shorten_text(remark.suggestion, LONGEST_REMARK))


def _section(text: str, number: int | None, limit: int) -> str:
    return safe_markdown(text, own_issue=number, limit=limit) if text.strip() else ""


def _beside(remark: Remark, page: str, number: int | None, limit: int) -> dict[str, str]:
    words = safe_markdown(remark.body, own_issue=number, limit=limit)
    code = fence(shorten_text(remark.suggestion, limit)) if remark.suggestion else ""
    code = f"Proposed instead:\n\n{code}" if code else ""
    place = code_span(shorten_text(remark.place, 200))
    lines = (
        f"#L{remark.line}" if remark.first == remark.line else (f"#L{remark.first}-L{remark.line}")
    )
    # A line that is taken out is no line of the commit, and an odd path may be none of its files.
    sound = remark.side == "RIGHT" and not {"", ".", ".."} & set(remark.path.split("/"))
    plain = "?plain=1" if remark.path.lower().endswith((".md", ".rst")) else ""
    url = f"{page}/{quote(remark.path)}{plain}{lines}" if page and sound else ""
    return {
        "place": f"[{place}](<{url}>)" if url else place,
        "words": _indented("\n\n".join(part for part in (words, code) if part)),
        "severity": remark.severity,
    }


def _indented(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line and f"  {line}" for line in lines).lstrip()
