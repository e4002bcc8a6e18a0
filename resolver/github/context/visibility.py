"""Determines what the requester could see, by the time of the request.

A text counts only if it is not newer than the trigger. Comments that maintainers have hidden as
unwanted are not used.
Source: https://docs.github.com/en/graphql/reference/interfaces#minimizable
"""

from datetime import UTC, datetime

from resolver.models.run import Trigger, TriggerKind

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


_UNWANTED_REASONS = frozenset({"spam", "abuse", "off-topic"})


def is_unwanted(minimized: bool, reason: str | None) -> bool:
    """Return True if a comment is hidden as spam, abuse or off-topic.

    Comments hidden as outdated, resolved or duplicate are read.
    """
    return minimized and (reason or "").casefold().replace("_", "-") in _UNWANTED_REASONS


def describe_minimized(count: int) -> str:
    """Return a text for a person that says how many comments are left out."""
    return f"{count} comment{'' if count == 1 else 's'} hidden as spam, abuse or off-topic"
