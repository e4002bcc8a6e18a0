"""Renders a review and publishes it with all its comments in one request, and only once.

Everything that the model wrote is escaped, except suggestions: GitHub applies them as they are, so
they must not be altered. A suggestion that cannot be shown unaltered is shown as plain code.
Source:
https://docs.github.com/pull-requests/collaborating-with-pull-requests/reviewing-changes-in-pull-requests/incorporating-feedback-in-your-pull-request

GitHub refuses a whole review if one of its comments is on a line that is not part of the diff, and
does not say which one. Its comments then go into its text.
Source: https://docs.github.com/en/rest/pulls/reviews#create-a-review-for-a-pull-request
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import quote

import github
from github.PullRequest import PullRequest
from github.PullRequestComment import PullRequestComment
from github.PullRequestReview import PullRequestReview
from markupsafe import Markup

from resolver.github.client.access import GitHubAccess
from resolver.github.client.accounts import is_by
from resolver.github.client.resources import Listing
from resolver.github.comments.find_or_create import write_once
from resolver.github.comments.report import Report
from resolver.github.comments.templates import render_comment, safe
from resolver.github.text.comment_markdown import MAX_BODY, safe_markdown
from resolver.github.text.markdown import code_span, fence, shorten_text, visible
from resolver.github.text.markers import review_marker
from resolver.models.pull_request import (
    PublishedReview,
    Remark,
    Review,
    describe_review,
)
from resolver.trace.untrusted_text import fenced, utf16_length

MAX_REMARK_LENGTH = 8_000
"""Maximum length of a comment's text, in UTF-16 units."""

MAX_SUGGESTION_LENGTH = 20_000
"""Maximum length in characters; a longer suggestion is shown as plain code."""

_LENGTH_LIMITS = ((12_000, 4_000, 60), (6_000, 1_200, 40), (3_000, 400, 20))
"""Limits to try in turn until the body fits.

They are the length of the summary, the length of each comment in the body, and the number of these
comments.
"""


def review_body(report: Report, review: Review, page: str | None, refused: int = 0) -> str:
    """Return the body of the review, at most 65,536 characters.

    `page` is the URL under which the files of the reviewed commit are shown. `refused` is how many
    of the comments in the body are there because GitHub did not accept their lines.
    """
    outcome = report.outcome
    number, host = report.trigger.number, report.forge_host
    for summary_limit, remark_limit, max_remarks in _LENGTH_LIMITS:
        text = render_comment(
            "review_body.md.j2",
            marker=safe(review_marker(report.trigger.key)),
            summary=_markdown(outcome.message if outcome else "", number, summary_limit, host),
            remarks=[
                _body_remark(remark, page, number, remark_limit, host)
                for remark in review.body_comments[:max_remarks]
            ],
            more_remarks=max(0, len(review.body_comments) - max_remarks),
            refused=refused,
            verification=_markdown(
                outcome.verification if outcome else "", number, remark_limit, host
            ),
            remaining=_markdown(outcome.remaining if outcome else "", number, remark_limit, host),
            review=review,
        )
        text = text.strip() + "\n"
        if utf16_length(text) <= MAX_BODY:
            break
    return text


def remark_body(remark: Remark, number: int | None, forge_host: str) -> str:
    """Return the text of a comment on lines of the diff. It links to pages of `forge_host` only."""
    return render_comment(
        "review_comment.md.j2",
        text=_markdown(remark.body, number, MAX_REMARK_LENGTH, forge_host),
        severity=remark.severity,
        suggestion=safe(suggestion_block(remark) or ""),
        code=safe(_as_code(remark) or ""),
    ).strip()


def is_applicable_suggestion(remark: Remark) -> bool:
    """Return True if the suggestion can be shown unaltered, where GitHub can apply it."""
    text = remark.suggestion
    return (
        text is not None
        and remark.side == "RIGHT"
        and len(text) <= MAX_SUGGESTION_LENGTH
        and visible(text) == text
    )


def suggestion_block(remark: Remark) -> str | None:
    """Return the suggestion as a block that GitHub can apply, None if there is none."""
    if remark.suggestion is None or not is_applicable_suggestion(remark):
        return None
    return fenced(remark.suggestion, "suggestion")


def _as_code(remark: Remark) -> str | None:
    if remark.suggestion is None or is_applicable_suggestion(remark):
        return None
    return fence(shorten_text(remark.suggestion, MAX_REMARK_LENGTH))


def _markdown(text: str, number: int | None, limit: int, host: str) -> Markup:
    shown = safe_markdown(text, own_issue=number, limit=limit, forge_host=host)
    return safe(shown if text.strip() else "")


def _body_remark(
    remark: Remark, page: str | None, number: int | None, limit: int, host: str
) -> dict[str, Any]:
    """Return a comment of the review's body with its place, as a link if it has a page."""
    text = _markdown(remark.body, number, limit, host)
    code = fence(shorten_text(remark.suggestion, limit)) if remark.suggestion else ""
    code = f"Proposed instead:\n\n{code}" if code else ""
    quoted_place = code_span(shorten_text(remark.place, 200))
    lines = (
        f"#L{remark.line}" if remark.first == remark.line else (f"#L{remark.first}-L{remark.line}")
    )
    # A deleted line is not in the commit, and a path with empty or dot segments may name no file of
    # it.
    has_stable_url = remark.side == "RIGHT" and not {"", ".", ".."} & set(remark.path.split("/"))
    query = "?plain=1" if remark.path.lower().endswith((".md", ".rst")) else ""
    url = f"{page}/{quote(remark.path)}{query}{lines}" if page and has_stable_url else ""
    return {
        "place": safe(f"[{quoted_place}](<{url}>)" if url else quoted_place),
        "text": safe(_indent("\n\n".join(part for part in (text, code) if part))),
        "severity": remark.severity,
    }


def _indent(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line and f"  {line}" for line in lines).lstrip()


MAX_COUNTED_COMMENTS = 100
"""Maximum number of comments of one review that are counted. No setting allows more."""

_MAX_SEARCHED_REVIEWS = 500
"""Number of newest reviews of a pull request that are searched for Resolver's own."""


def find_review(pull: PullRequest, own_login: str, key: str) -> PullRequestReview | None:
    """Return Resolver's published review for the request with this key, or None."""
    marker = review_marker(key)
    for review in _newest_reviews(pull):
        if is_by(review, own_login) and (review.body or "").startswith(marker):
            return review
    return None


def published_review(pull: PullRequest, own_login: str, key: str) -> PublishedReview | None:
    """Return what GitHub has of Resolver's review for the request with this key, or None.

    The comments in the body are not read back.
    """
    review = find_review(pull, own_login, key)
    if review is None:
        return None
    url = f"{pull.url}/reviews/{review.id}/comments"
    comments = Listing(pull.requester, PullRequestComment, url)
    placed = sum(1 for _ in islice(comments, MAX_COUNTED_COMMENTS))
    return PublishedReview(commit=review.commit_id or "", url=review.html_url, placed=placed)


def submit_review(
    access: GitHubAccess,
    pull: PullRequest,
    own_login: str,
    report: Report,
    review: Review,
    page: str,
) -> PublishedReview:
    """Publish the review and return it, or return the one that was published before.

    If GitHub refuses the lines of a comment, all comments go into the text. `page` is as in
    `review_body`. Raises ForgeError.
    """
    key, published = report.trigger.key, review

    def create() -> PullRequestReview:
        nonlocal published
        try:
            return _send(pull, report, review, page)
        except github.GithubException as error:
            if error.status != 422:
                raise
        # A comment must be on a line that is not in the diff. GitHub does not say which one.
        in_body = (*review.inline_comments, *review.body_comments)
        published = review.model_copy(update={"inline_comments": (), "body_comments": in_body})
        return _send(pull, report, published, page, len(review.inline_comments), omit_commit=True)

    found = write_once(
        access,
        f"publish the review of #{report.trigger.number}",
        "pull-requests: write",
        lambda: find_review(pull, own_login, key),
        create,
    )
    return describe_review(published, found.html_url)


def _send(
    pull: PullRequest,
    report: Report,
    review: Review,
    page: str,
    refused: int = 0,
    *,
    omit_commit: bool = False,
) -> PullRequestReview:
    """Submit the review.

    With `omit_commit` the commit is not named: no comment depends on it, and GitHub refuses one
    that is no longer part of the pull request.
    """
    document: dict[str, Any] = {
        "event": "COMMENT",
        "body": review_body(report, review, page, refused),
    }
    if review.inline_comments:
        document["comments"] = [_comment(remark, report) for remark in review.inline_comments]
    if not omit_commit:
        document["commit_id"] = review.commit
    url = f"{pull.url}/reviews"
    headers, data = pull.requester.requestJsonAndCheck("POST", url, input=document)
    return PullRequestReview(pull.requester, headers, data)


def _comment(remark: Remark, report: Report) -> dict[str, Any]:
    comment: dict[str, Any] = {
        "path": remark.path,
        "line": remark.line,
        "side": remark.side,
        "body": remark_body(remark, report.trigger.number, report.forge_host),
    }
    if remark.first != remark.line:
        comment |= {"start_line": remark.first, "start_side": remark.side}
    return comment


def _newest_reviews(pull: PullRequest) -> Iterator[PullRequestReview]:
    """Return the newest reviews, newest first, including the account's own pending one."""
    reviews = Listing(pull.requester, PullRequestReview, f"{pull.url}/reviews").newest(
        _MAX_SEARCHED_REVIEWS
    )
    return reversed(reviews)
