"""What the GraphQL API shows of accounts, issues, pull requests and refs, for the most part what
their REST documents hold.
"""

import re
from collections.abc import Mapping
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


Argument = TypeVar("Argument", int, str, dict[str, Any])
Arguments = Mapping[str, Any]
Fields = Mapping[str, Any]
"""Values by the names of fields. A function is called with the field's arguments."""

_EVENT_KINDS = {
    "LABELED_EVENT": ("labeled", "LabeledEvent"),
    "UNLABELED_EVENT": ("unlabeled", "UnlabeledEvent"),
    "RENAMED_TITLE_EVENT": ("renamed", "RenamedTitleEvent"),
    "LOCKED_EVENT": ("locked", "LockedEvent"),
}

MOST_TEXT = 512_000
"""Longer text is cut."""


def argument(arguments: Arguments, name: str, kind: type[Argument]) -> Argument:
    value = arguments.get(name)
    if not isinstance(value, kind):
        raise QueryError(f"Argument '{name}' is missing or has an invalid value")
    return value


def connection(rows: list[Fields], arguments: Arguments) -> Fields:
    given = {name: value for name, value in arguments.items() if value is not None}
    start = int(argument({"after": "0", **given}, "after", str))
    end = start + min(argument({"first": 100, **given}, "first", int), 100)
    if "last" in given:
        end = int(argument({"before": str(len(rows)), **given}, "before", str))
        start = max(0, end - min(argument(given, "last", int), 100))
    page = {
        "hasNextPage": end < len(rows),
        "endCursor": str(end),
        "hasPreviousPage": start > 0,
        "startCursor": str(start),
    }
    return {"totalCount": len(rows), "nodes": rows[start:end], "pageInfo": page}


def actor(account: Account) -> Fields:
    return {
        "__typename": account.type,
        "login": account.login,
        "databaseId": account.id,
        "id": core.node_id("User", account.id),
    }


def author(account: Account) -> Fields:
    """Who wrote something: of a bot without the mark that the REST API puts at its name's end."""
    return {**actor(account), "login": account.login.removesuffix("[bot]")}


def _of_document(given: Issue | Comment | ReviewComment | Review, document: Fields) -> Fields:
    """The fields of a text's REST document, under the names that they have here."""
    names = {name: re.sub("_(.)", lambda m: m[1].upper(), name) for name in document}
    return {
        **{names[name]: value for name, value in document.items()},
        "id": document["node_id"],
        "databaseId": given.id,
        "fullDatabaseId": str(given.id),
        "url": document["html_url"],
        "author": author(given.author),
        "body": given.body or "",
    }


def _said(given: Comment | ReviewComment | Review, document: Fields) -> Fields:
    edited_at = given.updated_at if given.updated_at != given.created_at else None
    return {
        **_of_document(given, document),
        "createdAt": core.stamp(given.created_at),
        "lastEditedAt": core.maybe_stamp(edited_at),
        "isMinimized": bool(given.minimized),
        "minimizedReason": given.minimized or None,
    }


def _on_line(site: Site, comment: ReviewComment) -> Fields:
    return {
        **_said(comment, core.review_comment(site, comment)),
        "publishedAt": core.stamp(comment.created_at),
        "state": "SUBMITTED",
        "pullRequestReview": {"fullDatabaseId": str(comment.review_id)},
    }


def _review(site: Site, review: Review) -> Fields:
    fields = {"submittedAt": None, **_said(review, core.review(site, review))}
    return {**fields, "commit": {"oid": review.commit}}


def text_nodes(site: Site, repository: Repository) -> dict[str, Fields]:
    """The comments of the repository's issues, on its code too, and its reviews by their ids."""
    found: list[Fields] = []
    for issue in repository.issues.values():
        found += [_said(comment, core.comment(site, comment)) for comment in issue.comments]
        found += [_on_line(site, comment) for comment in issue.review_comments]
        found += [_review(site, review) for review in issue.reviews]
    return {fields["id"]: fields for fields in found}


def issue_fields(site: Site, issue: Issue) -> Fields:
    """An issue or a pull request."""
    return {
        **_of_document(issue, core.issue(site, issue)),
        "__typename": "Issue",
        "state": issue.state.upper(),
        "closed": issue.state == "closed",
        "lastEditedAt": core.maybe_stamp(issue.last_edited_at),
        "repository": {"nameWithOwner": issue.repository.full_name},
        "labels": lambda given: connection([{"name": name} for name in issue.labels], given),
        "assignees": lambda given: connection([actor(who) for who in issue.assignees], given),
        "comments": lambda given: connection(
            [_said(comment, core.comment(site, comment)) for comment in issue.comments], given
        ),
        "timelineItems": lambda given: {"nodes": _timeline(site, issue, given)},
        "closedByPullRequestsReferences": lambda given: {
            "nodes": [issue_fields(site, closer) for closer in _closers(issue, given)]
        },
        **(_pull_fields(site, issue) if issue.pull else {}),
    }


def _pull_fields(site: Site, issue: Issue) -> Fields:
    """What a pull request has in addition to, or otherwise than, an issue."""
    pull = issue.pull
    assert pull is not None
    roots = [comment for comment in issue.review_comments if comment.in_reply_to is None]
    return {
        "__typename": "PullRequest",
        "mergedAt": core.maybe_stamp(pull.merged_at),
        "state": "MERGED" if pull.merged_at else issue.state.upper(),
        "headRefName": pull.head,
        "headRefOid": documents_git.tips(issue)[1],
        "baseRefName": pull.base,
        "headRepository": {"nameWithOwner": pull.head_repository.full_name},
        "reviewThreads": lambda given: connection(
            [thread_fields(site, issue, root) for root in roots], given
        ),
        "reviews": lambda given: connection(
            [_review(site, review) for review in issue.reviews], given
        ),
        "closingIssuesReferences": lambda given: connection(
            [issue_fields(site, issue.repository.issues[n]) for n in closed_issues(issue)], given
        ),
    }


def closed_issues(issue: Issue) -> list[int]:
    """The numbers of the issues that a pull request closes."""
    named = re.findall(r"(?i)\b(?:fix|fixes|closes|resolves) #(\d+)", issue.body or "")
    return [int(n) for n in named if int(n) in issue.repository.issues]


def _closers(issue: Issue, arguments: Arguments) -> list[Issue]:
    """Those that were closed unmerged only when they are asked for."""
    return [
        other
        for other in issue.repository.issues.values()
        if other.pull and issue.number in closed_issues(other)
        if arguments.get("includeClosedPrs") or other.state == "open" or other.pull.merged_at
    ]


def thread_fields(site: Site, issue: Issue, root: ReviewComment) -> Fields:
    """A conversation on lines, by its first comment. It is outdated when the lines around it have
    changed since."""
    base, head = documents_git.fork_point(issue)
    outdated = issue.repository.git.patch(base, head, root.path) != root.diff_hunk
    comments = [c for c in issue.review_comments if root.id in (c.id, c.in_reply_to)]
    return {
        "id": core.node_id("PullRequestReviewThread", root.id),
        "isResolved": root.resolved,
        "isOutdated": outdated,
        "path": root.path,
        "line": None if outdated else root.line,
        "startLine": None if outdated else root.start_line,
        "originalLine": root.line,
        "diffSide": root.side,
        "comments": lambda given: connection([_on_line(site, c) for c in comments], given),
    }


def _timeline(site: Site, issue: Issue, arguments: Arguments) -> list[Fields]:
    kinds = arguments.get("itemTypes")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds == ["CROSS_REFERENCED_EVENT"]:
        nodes = [_reference(site, issue, other, at) for other, at in _naming(issue)]
    else:
        if not set(kinds) <= set(_EVENT_KINDS):
            raise QueryError("Argument 'itemTypes' is missing or has an invalid value")
        wanted = dict(_EVENT_KINDS[kind] for kind in kinds)
        since = datetime.fromisoformat(arguments.get("since") or "0001-01-01T00:00:00Z")
        events = [e for e in issue.events if e.event in wanted and e.at >= since]
        nodes = [_event(event, wanted[event.event]) for event in events]
    if "first" in arguments:
        return nodes[: arguments["first"]]
    return nodes[-arguments["last"] :]


def _event(event: IssueEvent, kind: str) -> Fields:
    words = event.words[0] if event.words else None
    return {
        "__typename": kind,
        "createdAt": core.stamp(event.at),
        "actor": author(event.account),
        "label": {"name": words},
        "previousTitle": words,
    }


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


def _reference(site: Site, issue: Issue, other: Issue, at: datetime) -> Fields:
    return {
        "__typename": "CrossReferencedEvent",
        "createdAt": core.stamp(at),
        "isCrossRepository": other.repository is not issue.repository,
        "source": issue_fields(site, other),
    }


def repository_fields(site: Site, repository: Repository) -> Fields:
    """A repository with its issues and refs."""
    bare = repository.git

    def numbered(arguments: Arguments) -> Fields | None:
        found = repository.issues.get(argument(arguments, "number", int))
        return None if found is None or found.deleted else issue_fields(site, found)

    def file(commit: str, path: str) -> Fields | None:
        found = bare.text("ls-tree", commit, "--", path).split()
        if not found:
            return None
        content = bare.blob(found[2])
        text = content[:MOST_TEXT].decode("utf-8", "replace")
        cut = len(content) > MOST_TEXT
        return {"object": {"__typename": "Blob", "text": text, "isTruncated": cut}}

    def ref(name: str, prefix: str) -> Fields | None:
        if name not in bare.refs(prefix):
            return None
        commit = bare.text("rev-parse", name)
        target = {
            "__typename": "Commit",
            "oid": commit,
            "file": lambda given: file(commit, argument(given, "path", str)),
        }
        return {"name": name.removeprefix(prefix), "target": target}

    def refs(given: Arguments) -> Fields:
        prefix = argument(given, "refPrefix", str)
        names = sorted(bare.refs(prefix))[: argument(given, "first", int)]
        return {"nodes": [ref(name, prefix) for name in names]}

    return {
        "id": core.node_id("Repository", repository.id),
        "databaseId": repository.id,
        "nameWithOwner": repository.full_name,
        "isPrivate": repository.private,
        **dict.fromkeys(("issue", "pullRequest", "issueOrPullRequest"), numbered),
        "defaultBranchRef": lambda _: ref(f"refs/heads/{repository.default_branch}", "refs/heads/"),
        "ref": lambda given: ref(argument(given, "qualifiedName", str), "refs/"),
        "refs": refs,
    }
