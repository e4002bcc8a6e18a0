"""Parse a dispatch, made on GitHub's page or by another program, into a trigger.

Its inputs say what a comment would say: `issue` is the number, `instruction` the text after a
mention, `agent` the name after a slash.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import Field

from resolver.github.events.commands import read_instruction
from resolver.github.events.ignored import IgnoredEvent, ListeningPolicy, MalformedEvent
from resolver.github.events.mention import find_instruction
from resolver.github.events.payloads import Payload, RepositoryPayload, User
from resolver.github.text.escape import shorten_text
from resolver.models.run import Actor, Command, Trigger, TriggerKind

DISPATCH_EVENTS = frozenset({"workflow_dispatch", "repository_dispatch"})
"""Names of the events that dispatch a workflow."""

DISPATCH_TYPE = "agent"
"""The `event_type` of a repository_dispatch that is meant for Resolver."""

ASKED_BY_DISPATCH = frozenset(
    {
        Command.FIX,
        Command.QUESTION,
        Command.REVIEW,
        Command.UPDATE,
        Command.CONTINUE,
        Command.PUBLISH,
    }
)
"""Commands that a dispatch can give: those that need no comment for a run at work to find."""

OF_SWEEP = frozenset({"sweep_issues", "sweep_total"})
"""Inputs that a workflow passes on to a sweep, spelled like the settings."""

_NAME = re.compile(r"/?([A-Za-z0-9][\w-]{0,63})", re.A)
_NUMBER = re.compile(r"#?([1-9][0-9]{0,11})")


@dataclass(frozen=True)
class DispatchSource:
    """The identity of a dispatch, which its payload does not contain.

    `id` stays the same when a job is run again, like the id of its workflow run. `at` is when the
    dispatch arrived.
    """

    id: str
    at: datetime


class DispatchEvent(Payload):
    """A `workflow_dispatch` or `repository_dispatch` event.

    `action` is the `event_type` of a repository_dispatch.
    """

    action: str | None = None
    inputs: dict[str, Any] | None = None
    client_payload: dict[str, Any] | None = None
    repository: RepositoryPayload
    sender: User


class Inputs(Payload):
    """The inputs of a dispatch, converted to text."""

    issue: str = Field(default="", max_length=20)
    instruction: str = Field(default="", max_length=65_536)
    agent: str = Field(default="", max_length=65)


def from_dispatch(
    name: str,
    payload: Mapping[str, Any],
    listening: ListeningPolicy,
    arrival: DispatchSource | None,
) -> Trigger | IgnoredEvent:
    """Return the trigger for a dispatch, or the reason why there is none.

    Raises pydantic's ValidationError if the payload does not have the documented form.

    Args:
        name: `workflow_dispatch` or `repository_dispatch`.
        payload: The event's payload.
        listening: Whose events start work.
        arrival: Id and time of the dispatch. None on a webhook server, which receives an event for
            every workflow that is dispatched: the dispatch is for the job that it starts.
    """
    if name == "repository_dispatch" and payload.get("action") != DISPATCH_TYPE:
        return IgnoredEvent(f"the dispatch is of another type than {DISPATCH_TYPE}")
    if arrival is None:
        return IgnoredEvent("the dispatch is for the job that it starts")
    event = DispatchEvent.model_validate(payload)
    ignored = listening.ignores(event.sender)
    if ignored:
        return ignored
    given = (event.inputs if name == "workflow_dispatch" else event.client_payload) or {}
    wrong = _wrong(given)
    if wrong:
        return MalformedEvent(wrong)
    inputs = Inputs.model_validate({n: _text(given.get(n)) for n in Inputs.model_fields})
    number = _NUMBER.fullmatch(inputs.issue)
    if number is None:
        return MalformedEvent(f"the input `issue` is no number of an issue: {_shown(inputs.issue)}")
    words = find_instruction(inputs.instruction, listening.mention)
    words = inputs.instruction if words is None else words
    if inputs.agent:
        named = _NAME.fullmatch(inputs.agent)
        if named is None:
            return MalformedEvent(f"the input `agent` is no name: {_shown(inputs.agent)}")
        words = f"/{named[1]} {words}"
    asked = read_instruction(words, pull_request=True)
    if asked.command not in ASKED_BY_DISPATCH:
        return MalformedEvent(f"{asked.command.value} is said in a comment, not by a dispatch")
    sender = event.sender
    return Trigger(
        key=f"{name}:{arrival.id}",
        kind=TriggerKind.DISPATCHED,
        repository=event.repository.full_name,
        number=int(number[1]),
        actor=Actor(login=sender.login, id=sender.id, is_bot=sender.type == "Bot"),
        instruction=asked.words,
        command=asked.command,
        named=asked.named,
        extension=asked.extension,
        at=arrival.at,
    )


def asks_for_sweep(name: str, payload: Mapping[str, Any]) -> bool:
    """Return True if a job's event asks for a sweep: a schedule, or a dispatch without any input.

    A dispatch whose input can't be read does not start a sweep, which could cost money that nobody
    meant to spend.
    """
    if name == "schedule":
        return True
    given = {"workflow_dispatch": "inputs", "repository_dispatch": "client_payload"}.get(name)
    if given is None or (name == "repository_dispatch" and payload.get("action") != DISPATCH_TYPE):
        return False
    said = payload.get(given)
    if said is None:
        return True
    return isinstance(said, Mapping) and not any(
        _says_something(each, value) for each, value in said.items()
    )


def _says_something(name: str, value: Any) -> bool:
    """Return True if an input was filled in. GitHub sends an empty text for one that was not."""
    return name.replace("-", "_") not in OF_SWEEP and not (
        isinstance(value, str) and not value.strip()
    )


def _wrong(given: Mapping[str, Any]) -> str:
    """Return what is wrong with these inputs, or "" when nothing is."""
    issue = given.get("issue", "")
    if not _is_plain(issue):
        return f"the input `issue` is no number of an issue: {_shown(issue)}"
    for name in Inputs.model_fields:
        value = given.get(name)
        if value is not None and not _is_plain(value):
            return f"the input `{name}` is no text: {_shown(value)}"
    if _text(issue):
        return ""
    said = ", ".join(
        _shown(name) for name in list(given)[:10] if _says_something(name, given[name])
    )
    return f"the dispatch names no `issue`, but says {said}" if said else "it names no `issue`"


def _is_plain(value: Any) -> bool:
    """Return True for a text or an integer. A bool is an int in Python and is refused."""
    return isinstance(value, str) or type(value) is int


def _text(value: Any) -> str:
    """Return an input as text; "" when it is missing."""
    return "" if value is None else str(value).strip()


def _shown(value: Any) -> str:
    """Format a stranger's value for a message.

    Lists and objects can be nested to any depth, so only their type is named.
    """
    if isinstance(value, list | Mapping):
        return "a list" if isinstance(value, list) else "an object"
    return repr(shorten_text(value, 40) if isinstance(value, str) else value)
