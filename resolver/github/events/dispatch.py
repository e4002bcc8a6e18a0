"""From a dispatch, made by hand on GitHub's page or by another program, to a Trigger.

Its inputs say what a comment would say: `issue`, the number; `instruction`, the words that follow
a mention; `agent`, the name that follows a slash.
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

DISPATCH_TYPE = "agent"
"""The `event_type` of a repository_dispatch that is for us."""

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
"""What can be asked without a comment that a run at work would find."""

OF_SWEEP = frozenset({"sweep_issues", "sweep_total"})
"""Inputs that a workflow hands on to a sweep, in the spelling of the settings."""

_NAME = re.compile(r"/?([A-Za-z0-9][\w-]{0,63})", re.A)
_NUMBER = re.compile(r"#?([1-9][0-9]{0,11})")


@dataclass(frozen=True)
class DispatchSource:
    """How a dispatch came. id: the same when the same is done again, like the id of the job's run;
    at: when it came."""

    id: str
    at: datetime


class DispatchEvent(Payload):
    """Both events. action: the `event_type` of a repository_dispatch."""

    action: str | None = None
    inputs: dict[str, Any] | None = None
    client_payload: dict[str, Any] | None = None
    repository: RepositoryPayload
    sender: User


class Inputs(Payload):
    """What a dispatch says, as text whatever it came as."""

    issue: str = Field(default="", max_length=20)
    instruction: str = Field(default="", max_length=65_536)
    agent: str = Field(default="", max_length=65)


def from_dispatch(
    name: str,
    payload: Mapping[str, Any],
    listening: ListeningPolicy,
    arrival: DispatchSource | None,
) -> Trigger | IgnoredEvent:
    """What the event asks for. Raises pydantic's ValidationError for a payload that is none.

    arrival: None where it is not for us: a server is told of every workflow that is started.
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
    """Whether a job's event asks for a sweep: a schedule, or a dispatch that says nothing at all.

    One that says something which can't be read is none: a sweep costs money that nobody meant.
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
    """An input that nobody has filled in comes as an empty text."""
    return name.replace("-", "_") not in OF_SWEEP and not (
        isinstance(value, str) and not value.strip()
    )


def _wrong(given: Mapping[str, Any]) -> str:
    """What is wrong with these inputs, "" for nothing."""
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
    return isinstance(value, str) or type(value) is int


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _shown(value: Any) -> str:
    """A stranger's value in a line of ours; a list may be of any depth."""
    if isinstance(value, list | Mapping):
        return "a list" if isinstance(value, list) else "an object"
    return repr(shorten_text(value, 40) if isinstance(value, str) else value)
