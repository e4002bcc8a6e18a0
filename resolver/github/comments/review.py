"""Renders a review and publishes it with all its comments in one request, and only once.

Everything that the model wrote is escaped, except suggestions: GitHub applies them as they are, so
they must not be altered. A suggestion that cannot be shown unaltered is shown as plain code.
Source:
https://docs.github.com/pull-requests/collaborating-with-pull-requests/reviewing-changes-in-pull-requests/incorporating-feedback-in-your-pull-request

GitHub refuses a whole review if one of its comments is on a line that is not part of the diff, and
does not say which one. Its comments then go into its text.
Source: https://docs.github.com/en/rest/pulls/reviews#create-a-review-for-a-pull-request
"""

from itertools import islice
from typing import Any

import github
from github.PullRequest import PullRequest
from github.PullRequestComment import PullRequestComment
from github.PullRequestReview import PullRequestReview

from resolver.github.client.access import GitHubAccess
from resolver.github.client.accounts import is_by
from resolver.github.client.resources import Listing
from resolver.github.comments.find_or_create import write_once
from resolver.github.comments.report import Report
from resolver.github.comments.templates import render_comment, render_to_fit, safe
from resolver.github.text.comment_markdown import MAX_BODY
from resolver.github.text.markdown import visible
from resolver.github.text.markers import review_marker
from resolver.models.pull_request import (
    PublishedReview,
    Remark,
    Review,
    describe_review,
)
from resolver.trace.untrusted_text import fenced

MAX_REMARK_LENGTH = 8_000
"""Maximum length of a comment's text, in UTF-16 units."""

MAX_SUGGESTION_LENGTH = 20_000
"""Maximum length in characters; a longer suggestion is shown as plain code."""


def review_body(report: Report, review: Review, refused: int = 0) -> str:
    """Return the body of the review, at most 65,536 characters.

    `refused` is how many of the comments in the body are there because GitHub did not accept their
    lines.
    """
    return (
        render_to_fit(
            "review_body.md.j2",
            MAX_BODY - 1,
            report=report,
            outcome=report.outcome,
            marker=safe(review_marker(report.trigger.key)),
            refused=refused,
            review=review,
        )
        + "\n"
    )


def remark_body(report: Report, remark: Remark) -> str:
    """Return the text of a comment on lines of the diff."""
    return render_comment(
        "review_comment.md.j2",
        report=report,
        remark=remark,
        max_length=MAX_REMARK_LENGTH,
        suggestion=safe(suggestion_block(remark) or ""),
    ).strip()


def suggestion_block(remark: Remark) -> str | None:
    """Return the suggestion as a block that GitHub can apply.

    The result is None if there is none, or it can't be shown unaltered where GitHub can apply it.
    """
    text = remark.suggestion
    if text is None or remark.side != "RIGHT" or len(text) > MAX_SUGGESTION_LENGTH:
        return None
    return fenced(text, "suggestion") if visible(text) == text else None


MAX_COUNTED_COMMENTS = 100
"""Maximum number of comments of one review that are counted. No setting allows more."""

_MAX_SEARCHED_REVIEWS = 500
"""Number of newest reviews of a pull request that are searched for Resolver's own."""


def find_review(pull: PullRequest, own_login: str, key: str) -> PullRequestReview | None:
    """Return Resolver's published review for the request with this key, or None."""
    marker = review_marker(key)
    reviews = Listing(pull.requester, PullRequestReview, f"{pull.url}/reviews")
    for review in reversed(reviews.newest(_MAX_SEARCHED_REVIEWS)):
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
) -> PublishedReview:
    """Publish the review and return it, or return the one that was published before.

    If GitHub refuses the lines of a comment, all comments go into the text. Raises ForgeError.
    """
    key, published = report.trigger.key, review

    def create() -> PullRequestReview:
        nonlocal published
        try:
            return _send(pull, report, review)
        except github.GithubException as error:
            if error.status != 422:
                raise
        # A comment must be on a line that is not in the diff. GitHub does not say which one.
        in_body = (*review.inline_comments, *review.body_comments)
        published = review.model_copy(update={"inline_comments": (), "body_comments": in_body})
        return _send(pull, report, published, len(review.inline_comments), omit_commit=True)

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
        "body": review_body(report, review, refused),
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
        "body": remark_body(report, remark),
    }
    if remark.first != remark.line:
        comment |= {"start_line": remark.first, "start_side": remark.side}
    return comment
