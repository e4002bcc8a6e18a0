"""What a comment asks of a run at work, as requests to it. Who may ask is decided here."""

from resolver.config.access_policy import AccessPolicy
from resolver.controller.control import (
    Approve,
    Control,
    Deny,
    Extend,
    Pause,
    Request,
    Resume,
    Say,
    Stop,
)
from resolver.errors import Refused
from resolver.github.events.permission import PermissionReader, authorize
from resolver.models.approval import named_number
from resolver.models.run import Command, Extension, Trigger

STEERS = frozenset(
    {Command.STOP, Command.PAUSE, Command.RESUME, Command.CONTINUE, Command.APPROVE, Command.DENY}
)
"""The commands that are for a run at work, when there is one."""

STARTS = frozenset({Command.FIX, Command.QUESTION, Command.REVIEW, Command.UPDATE})
"""The commands that ask for a run of their own."""


def authorize_steering(
    asking: Trigger, running: Trigger | None, reader: PermissionReader, allowed: AccessPolicy
) -> None:
    """Raise Refused unless the person may ask this of the run that `running` has started.

    The same people as may start one; who has asked for a run may always stop it, and no bot
    decides about an action that waits.
    """
    own = running is not None and running.actor.login.casefold() == asking.actor.login.casefold()
    if asking.command is Command.STOP and own and asking.actor.login:
        return
    if asking.command in {Command.APPROVE, Command.DENY} and asking.actor.is_bot:
        raise Refused(
            f"{asking.actor.login} is a bot, and an action waits for a person",
            "ask a person with write access to decide",
        )
    authorize(asking, reader, allowed)


def send_control_requests(control: Control, asking: Trigger) -> None:
    """Ask it of the run; returns at once."""
    for request in control_requests(asking):
        control.send(request)


def control_requests(asking: Trigger) -> list[Request]:
    """What a comment on a thread with a run at work means."""
    by = asking.actor.login
    match asking.command:
        case Command.STOP:
            return [Stop(by=by, reason=asking.instruction)]
        case Command.PAUSE:
            return [Pause(by=by)]
        case Command.RESUME:
            return [Resume(by=by), *_said(asking.instruction, by)]
        case Command.CONTINUE:
            granted = [Extend(asking.extension, by)] if asking.extension != Extension() else []
            # "continue" to a run that pauses is what "resume" says
            return [*granted, *_said(asking.instruction, by), Resume(by=by)]
        case Command.APPROVE:
            number, words = named_number(asking.instruction)
            return [Approve(by=by, at=asking.at, number=number), *_said(words, by)]
        case Command.DENY:
            number, words = named_number(asking.instruction)
            return [Deny(by=by, at=asking.at, reason=words, number=number)]
        case _:
            return []  # new work


def _said(words: str, by: str) -> list[Request]:
    return [Say(words, by)] if words else []
