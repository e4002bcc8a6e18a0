"""Parses a GitHub event into a trigger, or into the reason why it starts no work.

No network is used. Authorization follows in `resolver.github.events.permission`.

A dispatch is made on GitHub's page or by another program. Its inputs say what a comment would say:
`issue` is the number, `instruction` the text after a mention, `agent` the name after a slash.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import Field, ValidationError

from resolver.github.events.checks import CHECK_EVENTS, trigger_from_check
from resolver.github.events.commands import (
    Instruction,
    asks_for_nothing,
    find_instruction,
    read_instruction,
)
from resolver.github.events.issues import trigger_from_issue
from resolver.github.events.payloads import (
    IssueCommentEvent,
    Payload,
    RepositoryPayload,
    User,
    snapshot_of,
)
from resolver.github.events.permission import (
    IgnoredEvent,
    MalformedEvent,
    is_own_text,
)
from resolver.github.events.reviews import trigger_from_review
from resolver.github.events.starting_events import ListeningPolicy, find_starting_event
from resolver.github.text.markdown import shorten_text
from resolver.models.base import describe_first_error
from resolver.models.run import Command, Trigger, TriggerKind

DISPATCH_EVENTS = frozenset({"workflow_dispatch", "repository_dispatch"})
"""Names of the events that dispatch a workflow."""

DISPATCH_TYPE = "agent"
"""The `event_type` of a repository_dispatch that is meant for Resolver."""

DISPATCH_COMMANDS = frozenset(
    {
        Command.FIX,
        Command.QUESTION,
        Command.REVIEW,
        Command.UPDATE,
        Command.CONTINUE,
        Command.PUBLISH,
    }
)
"""Commands that a dispatch can give: those that an active run need not find in a comment."""

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


def trigger_from_dispatch(
    name: str,
    payload: Mapping[str, Any],
    policy: ListeningPolicy,
    arrival: DispatchSource | None,
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
    raw_inputs = (event.inputs if name == "workflow_dispatch" else event.client_payload) or {}
    problem = _find_problem(raw_inputs)
    if problem:
        return MalformedEvent(problem)
    inputs = Inputs.model_validate({key: _text(raw_inputs.get(key)) for key in Inputs.model_fields})
    number = _NUMBER.fullmatch(inputs.issue)
    if number is None:
        return MalformedEvent(f"the input `issue` is not an issue number: {_quote(inputs.issue)}")
    instruction = _instruction_of(inputs, policy.mention)
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


def _instruction_of(inputs: Inputs, mention: str) -> Instruction | MalformedEvent:
    """Return what the inputs ask for. The instruction may begin with the mention, as in a comment,
    and the input `agent` stands for the name of an agent at its beginning."""
    text = find_instruction(inputs.instruction, mention)
    text = inputs.instruction if text is None else text
    if inputs.agent:
        agent = _NAME.fullmatch(inputs.agent)
        if agent is None:
            return MalformedEvent(f"the input `agent` is not a valid name: {_quote(inputs.agent)}")
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
    inputs_key = {"workflow_dispatch": "inputs", "repository_dispatch": "client_payload"}.get(name)
    if inputs_key is None or (
        name == "repository_dispatch" and payload.get("action") != DISPATCH_TYPE
    ):
        return False
    inputs = payload.get(inputs_key)
    if inputs is None:
        return True
    return isinstance(inputs, Mapping) and not any(
        _is_filled_in(value) for value in inputs.values()
    )


def _is_filled_in(value: Any) -> bool:
    """Return True if an input was filled in. GitHub sends an empty text for one that was not."""
    return not isinstance(value, str) or bool(value.strip())


def _find_problem(raw_inputs: Mapping[str, Any]) -> str:
    """Return what is wrong with these inputs, or "" when nothing is."""
    issue = raw_inputs.get("issue", "")
    if not _is_plain(issue):
        return f"the input `issue` is not an issue number: {_quote(issue)}"
    for name in Inputs.model_fields:
        value = raw_inputs.get(name)
        if value is not None and not _is_plain(value):
            return f"the input `{name}` is not a string: {_quote(value)}"
    if _text(issue):
        return ""
    filled_in = ", ".join(
        _quote(name) for name in list(raw_inputs)[:10] if _is_filled_in(raw_inputs[name])
    )
    return (
        f"the dispatch names no `issue`, but sets {filled_in}"
        if filled_in
        else "it names no `issue`"
    )


def _is_plain(value: Any) -> bool:
    """Return True for a text or an integer. A bool is an int in Python and is refused."""
    return isinstance(value, str) or type(value) is int


def _text(value: Any) -> str:
    """Return an input as text; "" when it is missing."""
    return "" if value is None else str(value).strip()


def _quote(value: Any) -> str:
    """Format a stranger's value for a message.

    Lists and objects can be nested to any depth, so only their type is named.
    """
    if isinstance(value, list | Mapping):
        return "a list" if isinstance(value, list) else "an object"
    return repr(shorten_text(value, 40) if isinstance(value, str) else value)


def parse_github_event(
    name: str,
    payload: Mapping[str, Any],
    policy: ListeningPolicy,
    arrival: DispatchSource | None = None,
) -> Trigger | IgnoredEvent:
    """Return the trigger for an event, or the reason why there is none.

    The trigger's key is made from the event itself, not from the delivery: a redelivery, a copy
    under another delivery id and a re-run of the same workflow all give the same key.

    Args:
        name: Name of the event, as in the header X-GitHub-Event or the variable GITHUB_EVENT_NAME.
        payload: The event's payload.
        policy: Whose events start work.
        arrival: Id and time of a dispatch, which its payload does not contain.
    """
    try:
        return _read(name, payload, policy, arrival)
    except ValidationError as error:
        reason = f"the {name} payload is invalid: {describe_first_error(error)}"
        return MalformedEvent(reason) if name in DISPATCH_EVENTS else IgnoredEvent(reason)


def _read(
    name: str,
    payload: Mapping[str, Any],
    policy: ListeningPolicy,
    arrival: DispatchSource | None,
) -> Trigger | IgnoredEvent:
    """Pass the payload to the parser of its event."""
    if name == "issue_comment":
        return _from_comment(IssueCommentEvent.model_validate(payload), policy)
    if name in {"issues", "pull_request"}:
        return trigger_from_issue(name, payload, policy)
    if name in {"pull_request_review", "pull_request_review_comment"}:
        return trigger_from_review(name, payload, policy)
    if name in DISPATCH_EVENTS:
        return trigger_from_dispatch(name, payload, policy, arrival)
    if name in CHECK_EVENTS:
        return trigger_from_check(name, payload, policy)
    return IgnoredEvent(f"{name} events start no work")


def needs_own_login(name: str, payload: Mapping[str, Any]) -> bool:
    """Return True if the event can't be parsed without the login of Resolver's own account."""
    event = find_starting_event(name, payload.get("action"))
    return event is not None and event.needs_own_login


def command_of(body: str, author: User, policy: ListeningPolicy) -> Instruction | None:
    """Return the instruction in a comment, or None when it is not addressed to Resolver."""
    if is_own_text(body) or policy.ignores(author):
        return None
    instruction = find_instruction(body, policy.mention)
    return None if instruction is None else read_instruction(instruction, reaches_run=True)


def _from_comment(event: IssueCommentEvent, policy: ListeningPolicy) -> Trigger | IgnoredEvent:
    """Return the trigger for a new comment on an issue or pull request."""
    if event.action != "created":
        return IgnoredEvent(f"the comment was {event.action}, only a new one starts work")
    author, issue = event.comment.user, event.issue
    if author is None or author.id != event.sender.id:
        return IgnoredEvent("the event was not sent by the comment's author")
    ignored = policy.ignores(author)
    if ignored:
        return ignored
    if is_own_text(event.comment.body):
        return IgnoredEvent("it was made by Resolver itself")
    instruction_text = find_instruction(event.comment.body or "", policy.mention)
    if instruction_text is None:
        return IgnoredEvent(f"the comment doesn't mention {policy.mention}")
    if asks_for_nothing(instruction_text):
        return IgnoredEvent("the comment contains no request")
    is_pull_request = issue.pull_request is not None
    instruction = read_instruction(instruction_text, pull_request=is_pull_request, reaches_run=True)
    at: datetime = event.comment.created_at
    return Trigger(
        key=f"issue_comment:{event.comment.id}",
        kind=TriggerKind.ISSUE_COMMENT,
        repository=event.repository.full_name,
        number=issue.number,
        is_pull_request=is_pull_request,
        actor=event.sender.actor,
        instruction=instruction.text,
        command=instruction.command,
        named=instruction.named,
        extension=instruction.extension,
        at=at,
        comment_id=event.comment.id,
        comment_node=event.comment.node_id,
        snapshot=snapshot_of(issue),
    )
