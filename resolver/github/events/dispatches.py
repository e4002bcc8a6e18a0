"""Parses dispatches, which are made on GitHub's page or by another program.

The inputs say what a comment would say: `issue` is the number, `instruction` the text after a
mention, `agent` the name after a slash.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from resolver.github.events.commands import Instruction, find_instruction, read_instruction
from resolver.github.events.payloads import Payload, RepositoryPayload, User
from resolver.github.events.permission import IgnoredEvent, MalformedEvent
from resolver.github.events.starting_events import ListeningPolicy
from resolver.github.text.markdown import shorten_text
from resolver.models.run import Command, Trigger, TriggerKind

DISPATCH_EVENTS = frozenset({"workflow_dispatch", "repository_dispatch"})
"""Names of the events that dispatch a workflow."""

DISPATCH_TYPE = "agent"
"""The `event_type` of a repository_dispatch that is meant for Resolver."""

DISPATCH_COMMANDS = frozenset({
    Command.FIX, Command.QUESTION, Command.REVIEW, Command.UPDATE, Command.CONTINUE,
    Command.PUBLISH,
})  # fmt: skip
"""Commands that a dispatch can give: those that an active run need not find in a comment."""

_NAME = re.compile(r"/?([A-Za-z0-9][\w-]{0,63})", re.A)
_NUMBER = re.compile(r"\s*#?([1-9][0-9]{0,11})\s*")


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


def trigger_from_dispatch(
    name: str, payload: Mapping[str, Any], policy: ListeningPolicy, arrival: DispatchSource | None
) -> Trigger | IgnoredEvent:
    """Return the trigger for a dispatch, or the reason why there is none.

    Raises pydantic's ValidationError if the payload does not have the documented form.

    Args:
        name: `workflow_dispatch` or `repository_dispatch`.
        payload: The event's payload.
        policy: Whose events start work.
        arrival: Id and time of the dispatch. None on a webhook server, which receives an event for
            every workflow that is dispatched: the dispatch is for the job that it starts.
    """
    if name == "repository_dispatch" and payload.get("action") != DISPATCH_TYPE:
        return IgnoredEvent(f"the dispatch is of another type than {DISPATCH_TYPE}")
    if arrival is None:
        return IgnoredEvent("the dispatch is for the job that it starts")
    event = DispatchEvent.model_validate(payload)
    ignored = policy.ignores(event.sender)
    if ignored:
        return ignored
    inputs = (event.inputs if name == "workflow_dispatch" else event.client_payload) or {}
    issue = inputs.get("issue")
    number = _NUMBER.fullmatch(str(issue)) if _is_text_or_integer(issue) else None
    if number is None:
        others = [_quote(key) for key, value in inputs.items() if _is_filled_in(value)][:10]
        return MalformedEvent(
            f"the input `issue` is not an issue number: {_quote(issue)}; "
            f"the dispatch sets {', '.join(others) or 'nothing'}"
        )
    instruction = _read_instruction(inputs, policy.mention)
    if isinstance(instruction, MalformedEvent):
        return instruction
    return Trigger(
        key=f"{name}:{arrival.id}",
        kind=TriggerKind.DISPATCHED,
        repository=event.repository.full_name,
        number=int(number[1]),
        actor=event.sender.actor,
        instruction=instruction.text,
        command=instruction.command,
        named=instruction.named,
        extension=instruction.extension,
        at=arrival.at,
    )


def _read_instruction(inputs: Mapping[str, Any], mention: str) -> Instruction | MalformedEvent:
    """Return what the inputs ask for. The instruction may begin with the mention, as in a
    comment."""
    given: dict[str, str] = {}
    for key in ("instruction", "agent"):
        value = inputs.get(key)
        if value is not None and not _is_text_or_integer(value):
            return MalformedEvent(f"the input `{key}` is not a string: {_quote(value)}")
        given[key] = "" if value is None else str(value).strip()
    text = find_instruction(given["instruction"], mention)
    text = given["instruction"] if text is None else text
    if given["agent"]:
        agent = _NAME.fullmatch(given["agent"])
        if agent is None:
            return MalformedEvent(f"the input `agent` is not a name: {_quote(given['agent'])}")
        text = f"/{agent[1]} {text}"
    instruction = read_instruction(text, pull_request=True)
    if instruction.command not in DISPATCH_COMMANDS:
        return MalformedEvent(
            f"{instruction.command.value} is only possible in a comment, not by a dispatch"
        )
    return instruction


def asks_for_sweep(name: str, payload: Mapping[str, Any]) -> bool:
    """Return True if a job's event asks for a sweep: a schedule, or a dispatch without any input.

    A dispatch whose input can't be read does not start a sweep, which could cost money that nobody
    meant to spend.
    """
    if name == "schedule":
        return True
    if name == "workflow_dispatch":
        inputs = payload.get("inputs")
    elif name == "repository_dispatch" and payload.get("action") == DISPATCH_TYPE:
        inputs = payload.get("client_payload")
    else:
        return False
    values = inputs.values() if isinstance(inputs, Mapping) else [inputs]
    return inputs is None or not any(map(_is_filled_in, values))


def _is_filled_in(value: Any) -> bool:
    """Return True if an input was filled in. GitHub sends an empty text for one that was not."""
    return not isinstance(value, str) or bool(value.strip())


def _is_text_or_integer(value: Any) -> bool:
    """Return True for a text or an integer. A bool is an int in Python and is refused."""
    return isinstance(value, str) or type(value) is int


def _quote(value: Any) -> str:
    """Format a stranger's value for a message.

    Lists and objects can be nested to any depth, so only their type is named.
    """
    if isinstance(value, list | Mapping):
        return "a list" if isinstance(value, list) else "an object"
    return repr(shorten_text(value, 40) if isinstance(value, str) else value)
