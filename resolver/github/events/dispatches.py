"""Parses dispatches, which are made on GitHub's page or by another program.

The inputs say what a comment would say: `issue` is the number, `instruction` the text after a
mention, `agent` the name after a slash.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from resolver.github.events.commands import read_instruction
from resolver.github.events.mentions import find_instruction
from resolver.github.events.payloads import Payload, RepositoryPayload, User
from resolver.github.events.permission import IgnoredEvent, MalformedEvent
from resolver.github.events.starting_events import ListeningPolicy
from resolver.models.run import Command, Trigger, TriggerKind

DISPATCH_EVENTS: Mapping[str, str] = {
    "workflow_dispatch": "inputs",
    "repository_dispatch": "client_payload",
}
"""Names of the events that dispatch a workflow, and of the field with their inputs."""

DISPATCH_TYPE = "agent"
"""The `event_type` of a repository_dispatch that is meant for Resolver."""

DISPATCH_COMMANDS = frozenset({
    Command.FIX, Command.QUESTION, Command.REVIEW, Command.UPDATE, Command.CONTINUE,
    Command.PUBLISH,
})  # fmt: skip
"""Commands that a dispatch can give: those that an active run need not find in a comment."""


@dataclass(frozen=True)
class DispatchSource:
    """The identity of a dispatch, which its payload does not contain.

    `id` stays the same when a job is run again, like the id of its workflow run. `at` is when the
    dispatch arrived.
    """

    id: str
    at: datetime


class DispatchInputs(Payload):
    """The inputs of a dispatch. Those of a workflow are texts, a program may send numbers."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    issue: str = Field(pattern=r"^\s*#?[1-9][0-9]{0,11}\s*$")
    instruction: str | None = None
    agent: str | None = Field(
        default=None, pattern=r"^\s*(?:/?[A-Za-z0-9][A-Za-z0-9_-]{0,63})?\s*$"
    )


class DispatchEvent(Payload):
    """A `workflow_dispatch` or `repository_dispatch` event."""

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
    try:
        inputs = DispatchInputs.model_validate(payload.get(DISPATCH_EVENTS[name]) or {})
    except ValidationError as error:
        place = error.errors(include_url=False, include_input=False)[0]["loc"]
        return MalformedEvent(f"the input `{place[0] if place else '?'}` is missing or not valid")
    given, agent = (inputs.instruction or "").strip(), (inputs.agent or "").strip().lstrip("/")
    request = find_instruction(given, policy.mention)
    text = given if request is None else request
    instruction = read_instruction(f"/{agent} {text}" if agent else text, pull_request=True)
    if instruction.command not in DISPATCH_COMMANDS:
        return MalformedEvent(
            f"{instruction.command.value} is only possible in a comment, not by a dispatch"
        )
    return Trigger(
        key=f"{name}:{arrival.id}",
        kind=TriggerKind.DISPATCHED,
        repository=event.repository.full_name,
        number=int(inputs.issue.strip().lstrip("#")),
        actor=event.sender.actor,
        instruction=instruction.text,
        command=instruction.command,
        named=instruction.named,
        extension=instruction.extension,
        at=arrival.at,
    )


def asks_for_sweep(name: str, payload: Mapping[str, Any]) -> bool:
    """Return True if a job's event asks for a sweep: a schedule, or a dispatch without any input.

    A dispatch whose input can't be read does not start a sweep, which could cost money that nobody
    meant to spend.
    """
    if name == "schedule":
        return True
    if name not in DISPATCH_EVENTS or (
        name == "repository_dispatch" and payload.get("action") != DISPATCH_TYPE
    ):
        return False
    inputs = payload.get(DISPATCH_EVENTS[name])
    values = inputs.values() if isinstance(inputs, Mapping) else [inputs]
    # GitHub sends an empty text for an input that was not filled in.
    return inputs is None or all(isinstance(value, str) and not value.strip() for value in values)
