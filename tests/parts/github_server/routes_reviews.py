"""REST endpoints of reviews and review comments."""

import re
from typing import Any

from tests.parts.github_server import access
from tests.parts.github_server import documents_core as core
from tests.parts.github_server import documents_git as documents
from tests.parts.github_server.exchange import (
    REPO,
    ROUTES,
    Answer,
    ApiError,
    Call,
    invalid,
    not_found,
)
from tests.parts.github_server.routes_issues import LONGEST_BODY, review_comment_of, text_of
from tests.parts.github_server.routes_pulls import pull_of
from tests.parts.github_server.state import Account, Issue, Review, ReviewComment, World

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.M)
STATES = {"COMMENT": "COMMENTED", "APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED"}


def _where(sent: Any) -> tuple[str, int | None, int, str]:
    """The lines that a comment names."""
    first, line = sent.get("start_line"), sent.get("line", 1)
    return str(sent.get("path")), first, int(line), str(sent.get("side", "RIGHT"))


def check_lines(issue: Issue, commit: str, where: tuple[str, int | None, int, str]) -> str:
    """The hunk of the diff that these lines are part of. where: path, first line of several, line,
    side ("RIGHT" is the new file). Raises ApiError 422 off the diff."""
    base, _ = documents.fork_point(issue)
    path, first, line, side = where
    assert issue.pull is not None
    if (path, line) in issue.pull.refused_lines:
        raise invalid("PullRequestReviewComment", "pull_request_review_thread.line")
    patch = issue.repository.git.patch(base, commit, path)
    if patch is None:
        raise invalid("PullRequestReviewComment", "pull_request_review_thread.path")
    for head in HUNK.finditer(patch):
        start, length = (head[3], head[4]) if side == "RIGHT" else (head[1], head[2])
        end = int(start) + int(length or 1)
        if int(start) <= (first or line) <= line < end:
            return patch
    raise invalid("PullRequestReviewComment", "pull_request_review_thread.line")


def new_review_comment(
    world: World,
    issue: Issue,
    body: str,
    author: Account,
    where: tuple[str, int | None, int, str],
    in_reply_to: ReviewComment | None = None,
    commit: str = "",
) -> ReviewComment:
    """where: as `check_lines` has it. commit: the head unless given."""
    _, head = documents.fork_point(issue)
    path, first, line, side = where
    commit = in_reply_to.commit if in_reply_to else commit or head
    comment = world.write(
        ReviewComment,
        (issue.repository, issue.number),
        author,
        body,
        path=path,
        start_line=first,
        line=line,
        side=side,
        commit=commit,
        diff_hunk=in_reply_to.diff_hunk if in_reply_to else check_lines(issue, commit, where),
        review_id=next(world.ids),
        in_reply_to=in_reply_to.id if in_reply_to else None,
    )
    issue.review_comments.append(comment)
    issue.updated_at = comment.created_at
    return comment


@ROUTES.add(f"GET {REPO}/pulls/{{pull_number}}/comments")
def list_review_comments(call: Call) -> Answer:
    repository = access.readable(call, "pull_requests")
    since = call.query.get("since", "")
    rows = [
        comment
        for comment in pull_of(call, repository).review_comments
        if core.stamp(comment.updated_at) >= since
    ]
    return call.page(rows, lambda comment: core.review_comment(call.site, comment))


@ROUTES.add(f"POST {REPO}/pulls/{{pull_number}}/comments/{{comment_id}}/replies")
def reply(call: Call) -> Answer:
    repository = access.repository_of(call)
    issue = pull_of(call, repository)
    author = access.may_write(call, repository, "pull_requests")
    parent = review_comment_of(call, repository)
    if parent.in_reply_to is not None:
        raise not_found()  # replies to replies are not supported there either
    body = text_of(call.body().get("body"), "PullRequestReviewComment")
    where = (parent.path, parent.start_line, parent.line, parent.side)
    comment = new_review_comment(call.world, issue, body, author, where, parent)
    return Answer(201, core.review_comment(call.site, comment))


@ROUTES.add(f"GET {REPO}/pulls/comments/{{comment_id}}")
def get_review_comment(call: Call) -> Answer:
    repository = access.readable(call, "pull_requests")
    found = review_comment_of(call, repository)
    return Answer(200, core.review_comment(call.site, found))


def _unprocessable(what: str) -> ApiError:
    """As reviews are refused: a list of sentences, which name no comment."""
    error = ApiError(422, "Unprocessable Entity")
    error.answer.document["errors"] = [what]
    return error


def new_review(
    world: World, issue: Issue, author: Account, body: str, state: str, commit: str = ""
) -> Review:
    """A review without comments. commit: the head unless given."""
    _, head = documents.fork_point(issue)
    at = (issue.repository, issue.number)
    review = world.write(Review, at, author, body, state=state, commit=commit or head)
    issue.reviews.append(review)
    return review


@ROUTES.add(f"POST {REPO}/pulls/{{pull_number}}/reviews")
def create_review(call: Call) -> Answer:
    repository = access.repository_of(call)
    issue = pull_of(call, repository)
    author = access.may_write(call, repository, "pull_requests")
    sent = call.body()
    state = STATES.get(sent.get("event"), "PENDING")
    body = str(sent.get("body") or "")
    if len(body) > LONGEST_BODY:
        raise _unprocessable(f"Body is too long (maximum is {LONGEST_BODY} characters)")
    if state in ("COMMENTED", "CHANGES_REQUESTED") and not body.strip():
        raise _unprocessable("Body can't be blank")
    if state in ("APPROVED", "CHANGES_REQUESTED") and author is issue.author:
        verb = "approve" if state == "APPROVED" else "request changes on"
        raise _unprocessable(f"Can not {verb} your own pull request")
    if any(r.state == "PENDING" and r.author is author for r in issue.reviews):
        raise _unprocessable("User can only have one pending review per pull request")
    base, head = documents.fork_point(issue)
    commit = str(sent.get("commit_id") or head)
    if commit not in repository.git.between(base, head):
        raise _unprocessable("Commit is not part of the pull request")
    comments = sent.get("comments") or []
    for comment in comments:
        text_of(comment.get("body"), "PullRequestReviewComment")
        try:
            check_lines(issue, commit, _where(comment))
        except ApiError:
            raise _unprocessable("Line could not be resolved") from None
    review = new_review(call.world, issue, author, body, state, commit)
    for comment in comments:
        made = new_review_comment(
            call.world, issue, comment["body"], author, _where(comment), commit=commit
        )
        made.review_id = review.id
        review.comments.append(made)
    if state == "PENDING":
        # Only its author sees it.
        issue.review_comments[:] = [c for c in issue.review_comments if c not in review.comments]
    else:
        issue.updated_at = call.world.now()
    return Answer(200, core.review(call.site, review))


def _visible(call: Call, issue: Issue) -> list[Review]:
    me = call.caller.account
    return [review for review in issue.reviews if review.state != "PENDING" or review.author is me]


@ROUTES.add(f"GET {REPO}/pulls/{{pull_number}}/reviews")
def list_reviews(call: Call) -> Answer:
    repository = access.readable(call, "pull_requests")
    rows = _visible(call, pull_of(call, repository))
    return call.page(rows, lambda review: core.review(call.site, review))


def _review_of(call: Call) -> tuple[Issue, Review]:
    repository = access.readable(call, "pull_requests")
    issue = pull_of(call, repository)
    id = call.number("review_id")
    found = next((review for review in _visible(call, issue) if review.id == id), None)
    if found is None:
        raise not_found()
    return issue, found


@ROUTES.add(f"GET {REPO}/pulls/{{pull_number}}/reviews/{{review_id}}")
def get_review(call: Call) -> Answer:
    return Answer(200, core.review(call.site, _review_of(call)[1]))


@ROUTES.add(f"DELETE {REPO}/pulls/{{pull_number}}/reviews/{{review_id}}")
def delete_review(call: Call) -> Answer:
    issue, review = _review_of(call)
    access.may_write(call, issue.repository, "pull_requests")
    if review.state != "PENDING":
        raise _unprocessable("Can not delete a non-pending pull request review")
    issue.reviews.remove(review)
    return Answer(200, core.review(call.site, review))


@ROUTES.add(f"GET {REPO}/pulls/{{pull_number}}/reviews/{{review_id}}/comments")
def list_comments_of_review(call: Call) -> Answer:
    _, review = _review_of(call)
    return call.page(review.comments, lambda comment: core.review_comment(call.site, comment))
