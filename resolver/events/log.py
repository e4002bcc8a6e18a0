"""The closed union of all event kinds, and how one line of a log is read and written.

An unknown `kind`, from a newer version, is kept verbatim as `Unknown`.
"""

import json
from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter, ValidationError

from resolver.errors import LogError
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import EventBase

Action = (
    a.CmdRun
    | a.IPythonRunCell
    | a.FileRead
    | a.FileWrite
    | a.FileEdit
    | a.BrowseURL
    | a.BrowseInteractive
    | a.McpCall
    | a.Recall
    | a.Delegate
    | a.PlanUpdate
    | a.Message
    | a.Think
    | a.Finish
    | a.Reject
    | a.ChangeAgentState
    | a.CondensationRequest
    | a.Invalid
)
Observation = (
    o.CmdOutput
    | o.IPythonOutput
    | o.FileReadResult
    | o.FileWriteResult
    | o.FileEditResult
    | o.BrowserOutput
    | o.McpResult
    | o.RecallResult
    | o.DelegateResult
    | o.PlanUpdated
    | o.ErrorObservation
    | o.AgentStateChanged
    | o.Null
)
Lifecycle = (
    life.RunStarted
    | life.SystemPrompt
    | life.ModelReplied
    | life.ModelRetried
    | life.Condensation
    | life.Warned
    | life.ReplayDiverged
    | life.Resumed
    | life.LimitsExtended
    | life.DelegateEvent
    | life.StageCompleted
)


class Unknown(EventBase):
    """An event of a kind this version does not know, kept as it was."""

    kind: str


KnownEvent = Action | Observation | Lifecycle
Event = KnownEvent | Unknown

ACTION_TYPES: tuple[type[EventBase], ...] = get_args(Action)
OBSERVATION_TYPES: tuple[type[EventBase], ...] = get_args(Observation)

SandboxAction = a.CmdRun | a.IPythonRunCell | a.FileRead | a.FileWrite | a.FileEdit
"""The actions that run in the sandbox."""

SANDBOX_ACTIONS: tuple[type[SandboxAction], ...] = get_args(SandboxAction)

RUNNABLE: dict[type[EventBase], type[EventBase]] = {
    a.CmdRun: o.CmdOutput,
    a.IPythonRunCell: o.IPythonOutput,
    a.FileRead: o.FileReadResult,
    a.FileWrite: o.FileWriteResult,
    a.FileEdit: o.FileEditResult,
    a.BrowseURL: o.BrowserOutput,
    a.BrowseInteractive: o.BrowserOutput,
    a.McpCall: o.McpResult,
    a.Recall: o.RecallResult,
    a.Delegate: o.DelegateResult,
    a.PlanUpdate: o.PlanUpdated,
}
"""Runnable action to its observation. Instead of it an ErrorObservation may come."""

_KNOWN: TypeAdapter[KnownEvent] = TypeAdapter(Annotated[KnownEvent, Field(discriminator="kind")])
KINDS = frozenset(t.model_fields["kind"].default for t in get_args(KnownEvent))


def parse_event(data: dict[str, Any]) -> Event:
    """One event from its JSON object. Raises LogError when a known kind has wrong fields."""
    kind = data.get("kind")
    if not isinstance(kind, str):
        raise LogError("an event has no kind", "check that the file is an event log")
    try:
        return _KNOWN.validate_python(data) if kind in KINDS else Unknown.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise LogError(f"event {data.get('id')} ({kind}): {where}: {first['msg']}") from error


def parse_line(line: bytes) -> Event:
    """One event from one line of events.jsonl. Raises LogError."""
    try:
        data = json.loads(line)
    except ValueError as error:
        raise LogError(f"not a line of JSON: {error}") from error
    if not isinstance(data, dict):
        raise LogError("a line of an event log is a JSON object")
    return parse_event(data)


DEEPEST = 100
"""Nesting of data in an event beyond which it is cut."""


def storable(event: Event) -> Event:
    """The event without what JSON or UTF-8 can't carry: half surrogates become U+FFFD, data
    nested beyond all reason is cut. Both come from outside, a model's arguments first of all."""
    data = _carried(event.model_dump(mode="python"), 0)
    return parse_event(data) if data["kind"] in KINDS else Unknown.model_validate(data)


def _carried(value: Any, depth: int) -> Any:
    if depth > DEEPEST:
        return "[cut: nested too deeply]"
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case dict():
            return {_carried(k, depth): _carried(v, depth + 1) for k, v in value.items()}
        case list() | tuple():
            return [_carried(v, depth + 1) for v in value]
        case _:
            return value


def dump_line(event: Event) -> str:
    """The event as one line of JSON, without the line's end.

    Raises PydanticSerializationError for what `storable` takes out.
    """
    return event.model_dump_json(exclude_none=not isinstance(event, Unknown))
