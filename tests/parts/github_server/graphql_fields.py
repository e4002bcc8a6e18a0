"""What the GraphQL API shows of accounts, issues and pull requests."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from tests.parts.github_server import documents_core as core
from tests.parts.github_server import documents_git
from tests.parts.github_server.state import (
    Account,
    Comment,
    Issue,
    Repository,
    Review,
    ReviewComment,
)


class QueryError(Exception):
    """The query can't be answered; the text is for the client."""


Argument = TypeVar("Argument", int, str)
Resolved = Any
Fields = Mapping[str, Callable[[Mapping[str, Any]], Resolved]]


def actor(account: Account) -> Fields:
    return {
        "__typename": lambda _: account.type,
        "login": lambda _: account.login,
        "databaseId": lambda _: account.id,
        "id": lambda _: core.node_id("User", account.id),
    }


def author(account: Account) -> Fields:
    """Who wrote something: of a bot without the mark that the REST API puts at its name's end."""
    return {**actor(account), "login": lambda _: account.login.removesuffix("[bot]")}


def connection(rows: list[Fields], arguments: Mapping[str, Any]) -> Fields:
    given = {name: value for name, value in arguments.items() if value is not None}
    start = int(argument({"after": "0", **given}, "after", str))
    end = start + min(argument({"first": 100, **given}, "first", int), 100)
    if "last" in given:
        end = int(argument({"before": str(len(rows)), **given}, "before", str))
        start = max(0, end - min(argument(given, "last", int), 100))
    page: Fields = {
        "hasNextPage": lambda _: end < len(rows),
        "endCursor": lambda _: str(end),
        "hasPreviousPage": lambda _: start > 0,
        "startCursor": lambda _: str(start),
    }
    return {
        "totalCount": lambda _: len(rows),
        "nodes": lambda _: rows[start:end],
        "pageInfo": lambda _: page,
    }


def _comment(comment: Comment) -> Fields:
    edited = comment.updated_at if comment.updated_at != comment.created_at else None
    return {
        "id": lambda _: core.node_id("IssueComment", comment.id),
        "databaseId": lambda _: comment.id,
        "body": lambda _: comment.body,
        "author": lambda _: author(comment.author),
        **_minimized(comment.minimized),
        "createdAt": lambda _: core.stamp(comment.created_at),
        "updatedAt": lambda _: core.stamp(comment.updated_at),
        "lastEditedAt": lambda _: core.maybe_stamp(edited),
    }


def _minimized(why: str) -> Fields:
    return {"isMinimized": lambda _: bool(why), "minimizedReason": lambda _: why or None}


def comment_nodes(repository: Repository) -> dict[str, Fields]:
    """The comments of the repository's issues, on its code too, and its reviews by their ids."""
    found = dict[str, Fields]()
    for issue in repository.issues.values():
        found |= {
            core.node_id("IssueComment", comment.id): _comment(comment)
            for comment in issue.comments
        }
        found |= {
            core.node_id("PullRequestReviewComment", comment.id): _on_line(comment)
            for comment in issue.review_comments
        }
        found |= {
            core.node_id("PullRequestReview", review.id): _review(review)
            for review in issue.reviews
        }
    return found


def issue_fields(issue: Issue) -> Fields:
    extra = pull_fields(issue) if issue.pull else {}
    return {
        **extra,
        "__typename": lambda _: "PullRequest" if issue.pull else "Issue",
        "id": lambda _: core.node_id("Issue", issue.id),
        "databaseId": lambda _: issue.id,
        "number": lambda _: issue.number,
        "title": lambda _: issue.title,
        "body": lambda _: issue.body or "",
        "state": lambda _: issue.state.upper(),
        "closed": lambda _: issue.state == "closed",
        "locked": lambda _: issue.locked,
        "labels": lambda arguments: connection(
            [{"name": lambda _, name=name: name} for name in issue.labels], arguments
        ),
        "author": lambda _: author(issue.author),
        "createdAt": lambda _: core.stamp(issue.created_at),
        "updatedAt": lambda _: core.stamp(issue.updated_at),
        "lastEditedAt": lambda _: core.maybe_stamp(issue.last_edited_at),
        "comments": lambda arguments: connection(
            [_comment(comment) for comment in issue.comments], arguments
        ),
    }


def argument(arguments: Mapping[str, Any], name: str, kind: type[Argument]) -> Argument:
    value = arguments.get(name)
    if not isinstance(value, kind):
        raise QueryError(f"Argument '{name}' is missing or has an invalid value")
    return value


def pull_fields(issue: Issue) -> Fields:
    """Return the fields that a pull request has in addition to those of an issue."""
    return {
        "reviewThreads": lambda arguments: connection(
            [
                thread_fields(issue, root)
                for root in issue.review_comments
                if root.in_reply_to is None
            ],
            arguments,
        ),
        "reviews": lambda arguments: connection(
            [_review(review) for review in issue.reviews], arguments
        ),
        "closingIssuesReferences": lambda arguments: connection(
            [_closed(issue.repository.issues[n]) for n in closed_issues(issue)], arguments
        ),
    }


def closed_issues(issue: Issue) -> list[int]:
    """The numbers of the issues that a pull request closes."""
    named = re.findall(r"(?i)\b(?:fix|fixes|closes|resolves) #(\d+)", issue.body or "")
    return [int(n) for n in named if int(n) in issue.repository.issues]


def _closed(issue: Issue) -> Fields:
    name = issue.repository.full_name
    return {
        **issue_fields(issue),
        "authorAssociation": lambda _: core.association(issue.repository, issue.author),
        "repository": lambda _: {"nameWithOwner": lambda _: name},
    }


def _is_outdated(issue: Issue, root: ReviewComment) -> bool:
    """Return True if the lines around the comment have changed since."""
    base, head = documents_git.fork_point(issue)
    git = issue.repository.git
    touched = {diff.path: diff for diff in git.changes(base, head)}
    diff = touched.get(root.path)
    return diff is None or git.patch(base, head, diff) != root.diff_hunk


def thread_fields(issue: Issue, root: ReviewComment) -> Fields:
    """A conversation on lines, by its first comment."""
    outdated = _is_outdated(issue, root)
    comments = [c for c in issue.review_comments if root.id in (c.id, c.in_reply_to)]
    return {
        "id": lambda _: core.node_id("PullRequestReviewThread", root.id),
        "isResolved": lambda _: root.resolved,
        "isOutdated": lambda _: outdated,
        "path": lambda _: root.path,
        "line": lambda _: None if outdated else root.line,
        "startLine": lambda _: None if outdated else root.start_line,
        "originalLine": lambda _: root.line,
        "diffSide": lambda _: root.side,
        "comments": lambda arguments: connection([_on_line(c) for c in comments], arguments),
    }


def _said(id: int, who: Account, body: str, created: datetime, updated: datetime) -> Fields:
    return {
        "fullDatabaseId": lambda _: str(id),
        "author": lambda _: author(who),
        "body": lambda _: body,
        "createdAt": lambda _: core.stamp(created),
        "lastEditedAt": lambda _: core.maybe_stamp(updated if updated != created else None),
    }


def _on_line(comment: ReviewComment) -> Fields:
    repository = comment.repository
    return {
        **_minimized(comment.minimized),
        **_said(comment.id, comment.author, comment.body, comment.created_at, comment.updated_at),
        "authorAssociation": lambda _: core.association(repository, comment.author),
        "url": lambda _: f"https://github.test/r{comment.id}",
        "publishedAt": lambda _: core.stamp(comment.created_at),
        "state": lambda _: "SUBMITTED",
        "diffHunk": lambda _: comment.diff_hunk,
        "pullRequestReview": lambda _: {"fullDatabaseId": lambda _: str(comment.review_id)},
    }


def _review(review: Review) -> Fields:
    public = None if review.state == "PENDING" else review.created_at
    return {
        "id": lambda _: core.node_id("PullRequestReview", review.id),
        **_minimized(review.minimized),
        **_said(review.id, review.author, review.body, review.created_at, review.updated_at),
        "authorAssociation": lambda _: core.association(review.repository, review.author),
        "url": lambda _: f"https://github.test/review-{review.id}",
        "submittedAt": lambda _: core.maybe_stamp(public),
        "state": lambda _: review.state,
        "commit": lambda _: {"oid": lambda _: review.commit},
    }
