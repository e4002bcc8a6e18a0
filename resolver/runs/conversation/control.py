"""Translates comments to requests to an active run, and checks who may send them."""

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
"""The commands that are addressed to an active run, if there is one."""

STARTS = frozenset({Command.FIX, Command.QUESTION, Command.REVIEW, Command.UPDATE})
"""The commands that start a run of their own."""


def authorize_steering(
    asking: Trigger, running: Trigger | None, reader: PermissionReader, allowed: AccessPolicy
) -> None:
    """Raise Refused unless the person may send this command to the run that `running` has started.

    The same people may steer a run as may start one. In addition, the person who asked for a run
    may always stop it. A bot never decides about an action that waits for approval.
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
    """Queue the requests of the comment for the run, without waiting for it."""
    for request in control_requests(asking):
        control.send(request)


def control_requests(asking: Trigger) -> list[Request]:
    """Return the requests that a comment in the conversation of an active run stands for."""
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
            # "continue" sent to a paused run means the same as "resume"
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
