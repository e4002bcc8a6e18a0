"""The closed union of all event kinds, and reading and writing one line of a log.

An event of an unknown `kind`, from a newer version, is kept verbatim as `Unknown`.
"""

from typing import Annotated, Any, TypedDict, get_args

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError, from_json

from resolver.errors import LogError, LogTooNew, UnstorableEvent
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import SCHEMA_VERSION, EventBase

Action = (
    a.CmdRun
    | a.IPythonRunCell
    | a.FileRead
    | a.FileWrite
    | a.FileEdit
    | a.BrowseURL
    | a.BrowseInteractive
    | a.McpCall
    | a.CodeSearch
    | a.CodeExplore
    | a.Recall
    | a.Remember
    | a.Delegate
    | a.PlanUpdate
    | a.ReviewComment
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
    | o.CodeResult
    | o.RecallResult
    | o.Remembered
    | o.DelegateResult
    | o.PlanUpdated
    | o.ReviewCommentNoted
    | o.ErrorObservation
    | o.AgentStateChanged
    | o.Null
)
Lifecycle = (
    life.RunStarted
    | life.SystemPrompt
    | life.ModelReplied
    | life.ServiceReplied
    | life.ModelRetried
    | life.ModelSwitched
    | life.Condensation
    | life.Warned
    | life.RiskAssessed
    | life.ConfirmationAsked
    | life.ConfirmationAnswered
    | life.ReplayDiverged
    | life.Resumed
    | life.LimitsExtended
    | life.DelegateEvent
    | life.StageCompleted
    | life.Egress
    | life.CheckExecuted
    | life.VerificationCompleted
)


class Unknown(EventBase):
    """An event of a kind that this version does not know, kept unchanged."""

    kind: str = Field(description="Kind of the event in the newer version.")


KnownEvent = Action | Observation | Lifecycle
Event = KnownEvent | Unknown

ACTION_TYPES: tuple[type[EventBase], ...] = get_args(Action)
OBSERVATION_TYPES: tuple[type[EventBase], ...] = get_args(Observation)

SandboxAction = (
    a.CmdRun
    | a.IPythonRunCell
    | a.FileRead
    | a.FileWrite
    | a.FileEdit
    | a.BrowseURL
    | a.BrowseInteractive
)
"""The actions that are executed in the sandbox."""

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
    a.CodeSearch: o.CodeResult,
    a.CodeExplore: o.CodeResult,
    a.Recall: o.RecallResult,
    a.Remember: o.Remembered,
    a.Delegate: o.DelegateResult,
    a.PlanUpdate: o.PlanUpdated,
    a.ReviewComment: o.ReviewCommentNoted,
}
"""Observation type of each executable action. An ErrorObservation may take its place."""

_KNOWN: TypeAdapter[KnownEvent] = TypeAdapter(Annotated[KnownEvent, Field(discriminator="kind")])
KINDS = frozenset(t.model_fields["kind"].default for t in get_args(KnownEvent))

LONGEST_LINE = 64 * 1024 * 1024
"""Limit of a line of the log in bytes. Lines of that size or more are neither written nor read."""


def parse_logged_event(data: dict[str, Any]) -> Event:
    """Return one event from its JSON object.

    Raises LogError if a known kind has wrong fields, and LogTooNew if the log's format has an
    unknown version.
    """
    try:
        return _whole(_KNOWN.validate_python(data, extra="allow"))
    except ValidationError as error:
        if _is_unknown(error):
            return _unknown(data)
        raise _explained(error, data) from error


def parse_line(line: bytes | str) -> Event:
    """Return one event from one line of events.jsonl. Raises what `parse_logged_event` raises."""
    try:
        return _whole(_KNOWN.validate_json(line, extra="allow"))
    except ValidationError as error:
        data = _object(line)
        if _is_unknown(error):
            return _unknown(data)
        raise _explained(error, data) from error


def _whole(event: KnownEvent) -> KnownEvent:
    """Validate a nested event too, and return the event."""
    if isinstance(event, life.DelegateEvent):
        parse_logged_event(event.event)
    return event


def _is_unknown(error: ValidationError) -> bool:
    first = _first(error)
    return first["type"] == "union_tag_invalid" and not first["loc"]


def _unknown(data: dict[str, Any]) -> Unknown:
    try:
        return Unknown.model_validate(data)
    except ValidationError as error:
        raise _explained(error, data) from error


def _object(line: bytes | str) -> dict[str, Any]:
    """Return the JSON object in the line, of any kind. Raises LogError."""
    try:
        text = line.decode() if isinstance(line, bytes) else line
    except UnicodeDecodeError as error:
        raise LogError(f"not UTF-8 text, at byte {error.start + 1} of the line") from error
    try:
        data = from_json(text)
    except ValueError as error:
        reason = str(error).replace(" at line 1 column", ", at byte")
        raise LogError(f"not a line of JSON: {reason}") from error
    if not isinstance(data, dict):
        raise LogError("a line of an event log is a JSON object")
    return data


def _explained(error: ValidationError, data: dict[str, Any]) -> LogError:
    kind = data.get("kind")
    if not isinstance(kind, str):
        return LogError("an event has no kind", "check that the file is an event log")
    version = data.get("schema_version")
    if kind == "run_started" and isinstance(version, int) and version > SCHEMA_VERSION:
        writer = f"Resolver {data.get('version', 'of a later version')}"
        return LogTooNew(
            f"{writer} wrote it in version {version} of the log's format, "
            f"and this Resolver reads versions up to {SCHEMA_VERSION}",
            f"read it with {writer}",
        )
    first = _first(error)
    where = ".".join(str(part) for part in first["loc"] if part != kind)
    return LogError(f"event {data.get('id')} ({kind}): {where}: {first['msg']}")


def _first(error: ValidationError) -> ErrorDetails:
    return error.errors(include_input=False, include_url=False)[0]


DEEPEST = 100
"""Depth of nested data in an event beyond which it is cut."""

LONGEST_TEXT = 1_000_000
"""Length in characters beyond which one text of an event is cut, if the event is too large."""


def storable(event: Event) -> Event:
    """Return the event without values that no log can hold.

    Lone surrogates become U+FFFD; data nested too deeply and very long texts are cut. Such values
    come from outside, mostly from a model's arguments.
    """
    return parse_logged_event(_carried(event.model_dump(mode="python", **_fields(event)), 0))


def _carried(value: Any, depth: int) -> Any:
    if depth > DEEPEST:
        return "[cut: nested too deeply]"
    match value:
        case str():
            # JSON and UTF-8 have no lone surrogates (RFC 8259 section 8.2). A round trip through
            # UTF-16 joins valid pairs and replaces the others.
            text = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            left_out = len(text) - LONGEST_TEXT
            return text if left_out <= 0 else f"{text[:LONGEST_TEXT]}[cut: {left_out} characters]"
        case dict():
            return {_carried(k, depth): _carried(v, depth + 1) for k, v in value.items()}
        case list() | tuple():
            return [_carried(v, depth + 1) for v in value]
        case _:
            return value


class _Fields(TypedDict, total=False):
    exclude_unset: bool
    exclude_none: bool


def _fields(event: Event) -> _Fields:
    """Return the options of the dump: an event that was read keeps the fields it came with.

    Only parsing sets `kind` explicitly, so `kind` tells whether an event was read.
    """
    if "kind" in event.model_fields_set:
        return {"exclude_unset": True}
    return {"exclude_none": True}


def dump_line(event: Event) -> str:
    """Return the event as one line of JSON, without the newline.

    Raises PydanticSerializationError for values that `storable` removes.
    """
    return event.model_dump_json(**_fields(event))


def stored_line(event: Event) -> str:
    """Return the line that a store keeps. Raises UnstorableEvent if no store can hold the event."""
    try:
        line = dump_line(event)
    except PydanticSerializationError as error:
        raise UnstorableEvent(f"event {event.id} can't be written as JSON: {error}") from error
    # A character has four bytes at most, so only very long lines need to be counted exactly.
    if 4 * len(line) >= LONGEST_LINE and len(line.encode()) >= LONGEST_LINE:
        raise UnstorableEvent(f"event {event.id} is larger than {LONGEST_LINE:,} bytes")
    return line
