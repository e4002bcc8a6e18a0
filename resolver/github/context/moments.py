"""Decides if the requester can have seen a text, by its times and that of the trigger."""

from datetime import UTC, datetime

from resolver.models.run import Trigger, TriggerKind

WRITTEN, EDITED = "written after", "edited after"


def lateness(
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
    asked = trigger.comment_id if trigger.kind is kind else None
    if asked is not None and (id == asked or (created == trigger.at and id < asked)):
        return EDITED if updated > max(created, trigger.at) else ""
    if created >= trigger.at:
        return WRITTEN
    return EDITED if updated >= trigger.at else ""


def utc(moment: datetime) -> datetime:
    """Return the time in UTC, which the API means if it names no time zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
