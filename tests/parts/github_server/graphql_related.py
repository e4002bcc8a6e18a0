"""What the GraphQL API shows of how issues and pull requests belong together."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tests.parts.github_server import documents_core as core
from tests.parts.github_server.graphql_fields import Fields, QueryError, author
from tests.parts.github_server.state import Issue, IssueEvent


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
    match arguments.get("itemTypes"):
        case "CROSS_REFERENCED_EVENT":
            nodes = [_reference(issue, other, at) for other, at in _naming(issue)]
        case "RENAMED_TITLE_EVENT":
            renames = [event for event in issue.events if event.event == "renamed"]
            nodes = [_renamed(event) for event in renames if _is_wanted(event, arguments)]
        case "LOCKED_EVENT":
            locks = [event for event in issue.events if event.event == "locked"]
            nodes = [_locked(event) for event in locks if _is_wanted(event, arguments)]
        case _:
            raise QueryError("Argument 'itemTypes' is missing or has an invalid value")
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
    return event.at >= datetime.fromisoformat(arguments["since"])


def _locked(event: IssueEvent) -> Fields:
    return {
        "__typename": lambda _: "LockedEvent",
        "createdAt": lambda _: core.stamp(event.at),
    }


def _renamed(event: IssueEvent) -> Fields:
    return {
        "__typename": lambda _: "RenamedTitleEvent",
        "previousTitle": lambda _: event.words[0],
    }
