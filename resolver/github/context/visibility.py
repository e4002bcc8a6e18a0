"""Determines what the requester could see, by the time of the request.

A text counts only if it is not newer than the trigger. The text of an issue or pull request at that
time is restored if the event of the request doesn't contain it: a dispatch, a failed check.
Comments that maintainers have hidden as unwanted are not used; only the GraphQL API knows them.
Source: https://docs.github.com/en/graphql/reference/interfaces#minimizable
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import AwareDatetime, Field

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.answers import ApiAnswer, Nodes, TitleChange
from resolver.github.client.resources import query_graphql, query_repository
from resolver.models.run import Snapshot, Trigger, TriggerKind

WRITTEN, EDITED = "written after", "edited after"


def reason_unseen(
    trigger: Trigger, kind: TriggerKind, id: int, created: datetime, updated: datetime
) -> str:
    """Return why the requester may not have seen this text, "" if they have seen it.

    kind: the kind of trigger that the text itself would have been. Only ids of the same kind can be
    compared.

    GitHub's times are whole seconds. A text of the same second as the trigger counts as earlier
    only if it has a smaller id, an edit of the same second always as later. A command line asks for
    the current state, so there nothing is late.
    """
    if trigger.kind is TriggerKind.COMMAND_LINE:
        return ""
    requested_id = trigger.comment_id if trigger.kind is kind else None
    if requested_id is not None and (
        id == requested_id or (created == trigger.at and id < requested_id)
    ):
        return EDITED if updated > max(created, trigger.at) else ""
    if created >= trigger.at:
        return WRITTEN
    return EDITED if updated >= trigger.at else ""


def utc(moment: datetime) -> datetime:
    """Return the time in UTC, which the API means if it names no time zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


IDS_PER_QUERY = 100
"""Number of comments per request."""

_UNWANTED_REASONS = frozenset({"spam", "abuse", "off-topic"})

_QUERY = """
query($ids: [ID!]!) {
  nodes(ids: $ids) { ... on IssueComment { isMinimized minimizedReason } }
}
"""


def is_unwanted(minimized: bool, reason: str | None) -> bool:
    """Return True if a comment is hidden as spam, abuse or off-topic.

    Comments hidden as outdated, resolved or duplicate are read.
    """
    return minimized and (reason or "").casefold().replace("_", "-") in _UNWANTED_REASONS


def minimized_comments(
    access: GitHubAccess, ids: Sequence[str], left_out: list[str]
) -> frozenset[str]:
    """Return the node ids of those of an issue's comments that are unwanted.

    If the request fails, the result is empty and `left_out` says so.
    """
    unwanted: set[str] = set()
    try:
        with access.wrap_errors("read which comments are hidden", "issues: read"):
            for start in range(0, len(ids), IDS_PER_QUERY):
                page_ids = ids[start : start + IDS_PER_QUERY]
                nodes = query_graphql(access, _QUERY, {"ids": page_ids})["nodes"]
                # The nodes are in the order of the ids. Their own ids can't be compared, because
                # GitHub may return them in a newer format.
                unwanted.update(
                    id
                    for id, node in zip(page_ids, nodes, strict=True)
                    if node and is_unwanted(node["isMinimized"], node["minimizedReason"])
                )
    except ForgeError as error:
        left_out.append(error.what)
    return frozenset(unwanted)


def describe_minimized(count: int) -> str:
    """Return a text for a person that says how many comments are left out."""
    return f"{count} comment{'' if count == 1 else 's'} hidden as spam, abuse or off-topic"


_ORIGINAL_TEXT_QUERY = """
query($owner: String!, $name: String!, $number: Int!, $at: DateTime!) {
  repository(owner: $owner, name: $name) { subject: issueOrPullRequest(number: $number) {
    ... on Issue { lastEditedAt renamed: timelineItems(
      itemTypes: RENAMED_TITLE_EVENT, since: $at, first: 1
    ) { nodes { ... on RenamedTitleEvent { previousTitle } } } }
    ... on PullRequest { lastEditedAt renamed: timelineItems(
      itemTypes: RENAMED_TITLE_EVENT, since: $at, first: 1
    ) { nodes { ... on RenamedTitleEvent { previousTitle } } } }
  } }
}
"""


class _OriginalText(ApiAnswer):
    edited_at: AwareDatetime | None = Field(alias="lastEditedAt", default=None)
    renamed: Nodes[TitleChange] = ()


def original_text(
    access: GitHubAccess,
    repository: str,
    number: int,
    trigger: Trigger,
    current: Snapshot,
    updated_at: datetime,
) -> Snapshot:
    """Return `current` as it was at the time of the trigger.

    Its body is "" if it was edited since, because GitHub's API doesn't return the earlier one.

    updated_at: when the issue was last changed. Raises what `GitHubAccess.wrap_errors` turns
    into a ForgeError.
    """
    if trigger.kind is TriggerKind.COMMAND_LINE or utc(updated_at) < trigger.at:
        return current
    subject = query_repository(
        access, repository, _ORIGINAL_TEXT_QUERY, number=number, at=trigger.at.isoformat()
    )["subject"]
    answer = _OriginalText.model_validate(subject or {})
    is_late = answer.edited_at is not None and answer.edited_at >= trigger.at
    return current.model_copy(
        update={
            "title": answer.renamed[0].before if answer.renamed else current.title,
            "body": "" if is_late else current.body,
        }
    )
