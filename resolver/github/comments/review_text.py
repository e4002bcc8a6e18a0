"""Renders a review: its body, and comments on lines of the diff with suggestions.

Everything that the model wrote is escaped, except suggestions: GitHub applies them as they are, so
they must not be altered. A suggestion that cannot be shown unaltered is shown as plain code.

Source:
https://docs.github.com/pull-requests/collaborating-with-pull-requests/reviewing-changes-in-pull-requests/incorporating-feedback-in-your-pull-request
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
"""Maximum length of a comment's text, in UTF-16 units."""

LONGEST_SUGGESTION = 20_000
"""Maximum length in characters; a longer suggestion is shown as plain code."""

_ROOM = ((12_000, 4_000, 60), (6_000, 1_200, 40), (3_000, 400, 20))
"""Limits to try in turn until the body fits.

They are the length of the summary, the length of each comment in the body, and the number of these
comments.
"""


def review_body(report: Report, review: Review, page: str, refused: int = 0) -> str:
    """Return the body of the review, at most 65,536 characters.

    `page` is the URL under which the files of the reviewed commit are shown. `refused` is how many
    of the comments in the body are there because GitHub did not accept their lines.
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
    """Return the text of a comment on lines of the diff."""
    words = safe_markdown(remark.body, own_issue=number, limit=LONGEST_REMARK)
    return render(
        "comments/review_comment.md.j2",
        words=words,
        severity=remark.severity,
        suggestion=suggestion_block(remark),
        code=_as_code(remark),
    ).strip()


def can_be_taken(remark: Remark) -> bool:
    """Return True if the suggestion can be shown unaltered, where GitHub can apply it."""
    text = remark.suggestion
    return (
        text is not None
        and remark.side == "RIGHT"
        and len(text) <= LONGEST_SUGGESTION
        and visible(text) == text
    )


def suggestion_block(remark: Remark) -> str:
    """Return the suggestion as a block that GitHub can apply, "" if there is none.

    The fence is longer than any run of backticks in the suggestion, so that nothing in it can close
    it.
    """
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
    # A deleted line is not in the commit, and a path with empty or dot segments may name no file of
    # it.
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
