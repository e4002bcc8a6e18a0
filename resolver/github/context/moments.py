"""What the requester can have seen: text from before the trigger, as it was then."""

from datetime import UTC, datetime

from resolver.models.run import Trigger, TriggerKind

WRITTEN, EDITED = "written after", "edited after"


def lateness(
    trigger: Trigger, kind: TriggerKind, id: int, created: datetime, updated: datetime
) -> str:
    """Why the requester may not have seen this text, "" if they have.

    kind: how the text would have started the work itself: ids of other kinds tell nothing.
    GitHub's times are whole seconds. In the trigger's own second a text counts as earlier only by
    a smaller id, an edit never. For a command line there is no earlier moment: the person asks
    for what is there now.
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
    """The moment in UTC, which the API means where it names no zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
