"""What the GraphQL API shows of accounts, issues and pull requests."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from tests.parts.github_server import documents_core as core
from tests.parts.github_server import documents_git
from tests.parts.github_server.exchange import Site
from tests.parts.github_server.state import (
    Account,
    Comment,
    Issue,
    IssueEvent,
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


def _comment(site: Site, comment: Comment) -> Fields:
    issue = comment.repository.issues[comment.number]
    return {
        "id": lambda _: core.node_id("IssueComment", comment.id),
        "databaseId": lambda _: comment.id,
        "url": lambda _: f"{core.page_url(site, issue)}#issuecomment-{comment.id}",
        **_minimized(comment.minimized),
        **_said(comment.id, comment.author, comment.body, comment.created_at, comment.updated_at),
        "authorAssociation": lambda _: core.association(comment.repository, comment.author),
        "updatedAt": lambda _: core.stamp(comment.updated_at),
    }


def _minimized(why: str) -> Fields:
    return {"isMinimized": lambda _: bool(why), "minimizedReason": lambda _: why or None}


def comment_nodes(site: Site, repository: Repository) -> dict[str, Fields]:
    """The comments of the repository's issues, on its code too, and its reviews by their ids."""
    found = dict[str, Fields]()
    for issue in repository.issues.values():
        found |= {
            core.node_id("IssueComment", comment.id): _comment(site, comment)
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


def issue_fields(site: Site, issue: Issue) -> Fields:
    extra = pull_fields(site, issue) if issue.pull else {}
    milestone = issue.milestone
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
            [_comment(site, comment) for comment in issue.comments], arguments
        ),
        "url": lambda _: core.page_url(site, issue),
        "milestone": lambda _: {"title": lambda _: milestone["title"]} if milestone else None,
        "assignees": lambda arguments: connection(
            [actor(who) for who in issue.assignees], arguments
        ),
    }


def argument(arguments: Mapping[str, Any], name: str, kind: type[Argument]) -> Argument:
    value = arguments.get(name)
    if not isinstance(value, kind):
        raise QueryError(f"Argument '{name}' is missing or has an invalid value")
    return value


def pull_fields(site: Site, issue: Issue) -> Fields:
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
            [_closed(site, issue.repository.issues[n]) for n in closed_issues(issue)], arguments
        ),
    }


def closed_issues(issue: Issue) -> list[int]:
    """The numbers of the issues that a pull request closes."""
    named = re.findall(r"(?i)\b(?:fix|fixes|closes|resolves) #(\d+)", issue.body or "")
    return [int(n) for n in named if int(n) in issue.repository.issues]


def _closed(site: Site, issue: Issue) -> Fields:
    name = issue.repository.full_name
    return {
        **issue_fields(site, issue),
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


def merge_fields(issue: Issue) -> Fields:
    """Fields of a pull request; its state is MERGED once it is."""
    pull = issue.pull
    assert pull is not None
    _, head = documents_git.fork_point(issue)
    source = pull.head_repository.full_name
    state = "MERGED" if pull.merged_at else issue.state.upper()
    return {
        "state": lambda _: state,
        "headRefName": lambda _: pull.head,
        "headRefOid": lambda _: head,
        "baseRefName": lambda _: pull.base,
        "headRepository": lambda _: {"nameWithOwner": lambda _: source},
    }


def related_fields(issue: Issue) -> Fields:
    """Return the fields about related issues, for an issue or a pull request."""
    pull = issue.pull
    fields: Fields = {
        "authorAssociation": lambda _: core.association(issue.repository, issue.author),
        "closedAt": lambda _: core.maybe_stamp(issue.closed_at),
        "timelineItems": lambda arguments: {"nodes": lambda _: _timeline(issue, arguments)},
        "closedByPullRequestsReferences": lambda arguments: {
            "nodes": lambda _: [_closing(closer) for closer in _closers(issue, arguments)]
        },
    }
    if pull is None:
        return fields
    return {**fields, "mergedAt": lambda _: core.maybe_stamp(pull.merged_at)}


def _closers(issue: Issue, arguments: Mapping[str, Any]) -> list[Issue]:
    """Those that were closed unmerged only when they are asked for."""
    words = re.compile(rf"(?i)\b(?:fix|fixes|closes|resolves) #{issue.number}\b")
    others = issue.repository.issues.values()
    closing = [other for other in others if other.pull and words.search(other.body or "")]
    if arguments.get("includeClosedPrs"):
        return closing
    return [
        closer
        for closer in closing
        if closer.state == "open" or (closer.pull and closer.pull.merged_at)
    ]


def _closing(issue: Issue) -> Fields:
    merged_at = issue.pull.merged_at if issue.pull else None
    merged = merged_at is not None
    return {
        "mergedAt": lambda _: core.maybe_stamp(merged_at),
        **_named(issue),
        "state": lambda _: "MERGED" if merged else issue.state.upper(),
        "url": lambda _: f"https://github.test/pull/{issue.number}",
        "author": lambda _: author(issue.author),
    }


def _named(issue: Issue) -> Fields:
    name = issue.repository.full_name
    return {
        "__typename": lambda _: "PullRequest" if issue.pull else "Issue",
        "number": lambda _: issue.number,
        "repository": lambda _: {"nameWithOwner": lambda _: name},
    }


def _timeline(issue: Issue, arguments: Mapping[str, Any]) -> list[Fields]:
    kinds = arguments.get("itemTypes")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds == ["CROSS_REFERENCED_EVENT"]:
        nodes = [_reference(issue, other, at) for other, at in _naming(issue)]
    else:
        words = {name.upper() + "_EVENT": name for name in _EVENT_FIELDS}
        words["RENAMED_TITLE_EVENT"] = words.pop("RENAMED_EVENT")
        if not set(kinds) <= set(words):
            raise QueryError("Argument 'itemTypes' is missing or has an invalid value")
        wanted = {words[kind] for kind in kinds}
        events = [event for event in issue.events if event.event in wanted]
        nodes = [_EVENT_FIELDS[e.event](e) for e in events if _is_wanted(e, arguments)]
    if "first" in arguments:
        return nodes[: arguments["first"]]
    return nodes[-arguments["last"] :]


def _naming(issue: Issue) -> list[tuple[Issue, datetime]]:
    """Return the issues and pull requests that reference the issue, and when they did."""
    word = re.compile(rf"(?<![\w/])#{issue.number}\b")
    found = list(issue.named_by)
    for other in issue.repository.issues.values():
        if other is issue:
            continue
        texts = [(other.body or "", other.created_at)]
        texts += [(comment.body, comment.created_at) for comment in other.comments]
        at = next((at for text, at in texts if word.search(text)), None)
        if at is not None:
            found.append((other, at))
    return sorted(found, key=lambda reference: reference[1])


def _reference(issue: Issue, other: Issue, at: datetime) -> Fields:
    return {
        "__typename": lambda _: "CrossReferencedEvent",
        "createdAt": lambda _: core.stamp(at),
        "isCrossRepository": lambda _: other.repository is not issue.repository,
        "source": lambda _: _named(other),
    }


def _is_wanted(event: IssueEvent, arguments: Mapping[str, Any]) -> bool:
    since = arguments.get("since")
    return since is None or event.at >= datetime.fromisoformat(since)


def _locked(event: IssueEvent) -> Fields:
    return {
        "__typename": lambda _: "LockedEvent",
        "createdAt": lambda _: core.stamp(event.at),
    }


def _renamed(event: IssueEvent) -> Fields:
    return {
        "__typename": lambda _: "RenamedTitleEvent",
        "createdAt": lambda _: core.stamp(event.at),
        "previousTitle": lambda _: event.words[0],
    }


def _labeled(event: IssueEvent) -> Fields:
    kind = "LabeledEvent" if event.event == "labeled" else "UnlabeledEvent"
    return {
        "__typename": lambda _: kind,
        "createdAt": lambda _: core.stamp(event.at),
        "label": lambda _: {"name": lambda _: event.words[0]},
        "actor": lambda _: author(event.account),
    }


_EVENT_FIELDS = {
    "labeled": _labeled,
    "unlabeled": _labeled,
    "renamed": _renamed,
    "locked": _locked,
}

MOST_TEXT = 512_000
"""Longer text is cut."""


def ref_fields(repository: Repository) -> Fields:
    """The fields of a repository that are about its refs."""
    bare = repository.git

    def blob(content: bytes) -> Fields:
        return {
            "__typename": lambda _: "Blob",
            "text": lambda _: content[:MOST_TEXT].decode("utf-8", "replace"),
            "isTruncated": lambda _: len(content) > MOST_TEXT,
        }

    def file(commit: str, path: str) -> Fields | None:
        found = bare.text("ls-tree", commit, "--", path).split()
        return {"object": lambda _: blob(bare.blob(found[2]))} if found else None

    def target(name: str) -> Fields:
        commit = bare.text("rev-parse", name)
        return {
            "__typename": lambda _: "Commit",
            "oid": lambda _: commit,
            "file": lambda given: file(commit, argument(given, "path", str)),
        }

    def ref(name: str, prefix: str) -> Fields | None:
        if name not in bare.refs(prefix):
            return None
        return {"name": lambda _: name.removeprefix(prefix), "target": lambda _: target(name)}

    def refs(given: Mapping[str, Any]) -> Fields:
        prefix = argument(given, "refPrefix", str)
        names = sorted(bare.refs(prefix))[: argument(given, "first", int)]
        return {"nodes": lambda _: [ref(name, prefix) for name in names]}

    default = f"refs/heads/{repository.default_branch}"
    return {
        "defaultBranchRef": lambda _: ref(default, "refs/heads/"),
        "ref": lambda given: ref(argument(given, "qualifiedName", str), "refs/"),
        "refs": refs,
    }
