"""Decides whether a request still stands: when a late delivery arrives, and before the result of a
run is published.

A run takes minutes to hours. Meanwhile the comment may be deleted or edited, the issue closed or
locked, the label removed, or the requester may lose write access.
"""

import logging
from datetime import datetime, timedelta

from resolver.config.settings import Settings
from resolver.errors import NotAllowed, Refused, RunStopped
from resolver.github.context.request_status import RequestStatus
from resolver.github.events.commands import find_instruction, read_instruction
from resolver.github.events.permission import authorize
from resolver.github.forge import Forge
from resolver.models.run import Command, Trigger, TriggerKind
from resolver.runs.stages import RunRequest

logger = logging.getLogger("resolver.runs.withdrawal")


def find_withdrawal(trigger: Trigger, status: RequestStatus, mention: str, label: str) -> str:
    """Return how the request was taken back since it was made, "" if it still stands.

    mention, label: what addresses Resolver, and what asks for work, by the operator's settings.
    """
    number = trigger.subject
    if not status.exists:
        return f"#{number} was deleted or moved"
    if status.closed:
        return f"#{number} was closed"
    if status.locked:
        return f"the conversation of #{number} was locked"
    if status.has_comment and status.comment is None:
        return "the comment that asked for it was deleted"
    is_comment = status.comment is not None and trigger.kind is not TriggerKind.REVIEW_SUBMITTED
    if status.comment and is_comment and not asks_for_work(status.comment.body, mention):
        return "the comment that asked for it was edited and no longer asks"
    if trigger.kind is TriggerKind.ISSUE_OPENED and not asks_for_work(status.issue.body, mention):
        return f"the text of #{number} was edited and no longer asks"
    labels = {name.casefold() for name in status.labels}
    if trigger.kind is TriggerKind.ISSUE_LABELED and label.casefold() not in labels:
        return f"the label {label} was removed from #{number}"
    return ""


def asks_for_work(body: str, mention: str) -> bool:
    """Return True if the current text of a request still addresses Resolver, and not to stop it."""
    instruction = find_instruction(body, mention)
    return instruction is not None and read_instruction(instruction).command is not Command.STOP


def find_change_since_delivery(
    trigger: Trigger, status: RequestStatus, mention: str, label: str
) -> str:
    """Return how a request differs from what an old delivery says, "" if it is the same."""
    withdrawal = find_withdrawal(trigger, status, mention, label)
    edited_at = status.comment.edited_at if status.comment else None
    if not withdrawal and edited_at is not None and edited_at > trigger.at:
        return "the comment that asked for it was edited since"
    return withdrawal


def require_standing_request(request: RunRequest, settings: Settings, forge: Forge) -> None:
    """Raise RunStopped if the request was taken back, or its requester may no longer start work.

    Called immediately before the first public write of a result. A finished change is kept. Raises
    ForgeError if GitHub can't be asked.
    """
    trigger = request.trigger
    if not request.publish or request.is_local or request.by_operator or trigger.number is None:
        return
    status = forge.request_status(trigger)
    withdrawal = find_withdrawal(trigger, status, settings.mention, settings.label)
    if not withdrawal:
        try:
            authorize(trigger, forge, settings.access_policy)
        except NotAllowed as refused:
            withdrawal = refused.what
    if withdrawal:
        logger.warning("run %s publishes nothing: %s", request.run, withdrawal)
        raise RunStopped(f"{withdrawal} while the run was working, so nothing was published")


def require_current_delivery(
    request: RunRequest, settings: Settings, forge: Forge, now: datetime
) -> None:
    """Raise Refused for an old delivery whose request was taken back or edited since.

    Whoever can replay a signed delivery could otherwise start work that nobody asks for any more.
    The error is silent: nobody is waiting for an answer to it.
    """
    trigger = request.trigger
    max_age = timedelta(seconds=settings.max_delivery_age_seconds)
    if request.is_local or trigger.number is None or now - trigger.at <= max_age:
        return
    status = forge.request_status(trigger)
    change = find_change_since_delivery(trigger, status, settings.mention, settings.label)
    if change:
        logger.warning("run %s is refused: made at %s, %s", request.run, trigger.at, change)
        refused = Refused(
            f"the request was made at {trigger.at:%Y-%m-%d %H:%M} UTC, and {change}",
            "make the request again",
        )
        refused.is_silent = True
        raise refused
