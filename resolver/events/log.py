"""The closed union of all event kinds, and reading and writing the lines of a log.

Lines are read from any source and validated. An event of an unknown `kind`, from a newer version,
is kept verbatim as `Unknown`. The JSON schema of a line is in `schema.py`.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypedDict, get_args

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json

from resolver.errors import LogError, UnstorableEvent
from resolver.events import lifecycle as life
from resolver.events.actions import Action
from resolver.events.base import SCHEMA_VERSION, ActionBase, EventBase
from resolver.events.observations import Observation

Lifecycle = (
    life.RunStarted
    | life.SystemPrompt
    | life.ModelReplied
    | life.ServiceReplied
    | life.ModelRetried
    | life.ModelSwitched
    | life.Condensation
    | life.Warned
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

_KNOWN_EVENTS: TypeAdapter[KnownEvent] = TypeAdapter(
    Annotated[KnownEvent, Field(discriminator="kind")]
)
EVENT_TYPES: tuple[type[EventBase], ...] = get_args(KnownEvent)
KINDS = frozenset(event_type.model_fields["kind"].default for event_type in EVENT_TYPES)

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Limit of a line of the log in bytes. Lines of that size or more are neither written nor read."""


def parse_logged_event(data: dict[str, Any]) -> Event:
    """Return one event from its JSON object.

    Raises LogError if a known kind has wrong fields, or the log's format has another version.
    """
    kind = data.get("kind")
    try:
        if isinstance(kind, str) and kind not in KINDS:
            return Unknown.model_validate(data)
        return _validate_nested(_KNOWN_EVENTS.validate_python(data, extra="allow"))
    except ValidationError as error:
        raise _log_error(error, data) from error


def parse_line(line: bytes | str) -> Event:
    """Return one event from one line of events.jsonl. Raises what `parse_logged_event` raises."""
    try:
        return _validate_nested(_KNOWN_EVENTS.validate_json(line, extra="allow"))
    except ValidationError:
        return parse_logged_event(_parse_object(line))


def innermost(event: Event) -> Event:
    """Return the event itself; that of a delegate, at any depth, in place of a DelegateEvent."""
    while isinstance(event, life.DelegateEvent):
        event = parse_logged_event(event.event)
    return event


def _validate_nested(event: KnownEvent) -> KnownEvent:
    """Validate a nested event too, and return the event."""
    if isinstance(event, life.DelegateEvent):
        parse_logged_event(event.event)
    return event


def _parse_object(line: bytes | str) -> dict[str, Any]:
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


def _log_error(error: ValidationError, data: dict[str, Any]) -> LogError:
    kind = data.get("kind")
    if not isinstance(kind, str):
        return LogError("an event has no kind", "check that the file is an event log")
    version = data.get("schema_version")
    if kind == "run_started" and isinstance(version, int) and version != SCHEMA_VERSION:
        writer = f"Resolver {data.get('version', 'of another version')}"
        return LogError(
            f"{writer} wrote it in version {version} of the log's format, "
            f"and this Resolver reads version {SCHEMA_VERSION}",
            f"read it with {writer}",
        )
    error_details = error.errors(include_input=False, include_url=False)[0]
    location = ".".join(str(part) for part in error_details["loc"] if part != kind)
    return LogError(f"event {data.get('id')} ({kind}): {location}: {error_details['msg']}")


MAX_NESTING_DEPTH = 100
"""Depth of nested data in an event beyond which it is cut."""

MAX_TEXT_LENGTH = 1_000_000
"""Length in characters beyond which one text of an event is cut, if the event is too large."""


def make_storable(event: Event) -> Event:
    """Return the event without values that no log can hold.

    Lone surrogates become U+FFFD; data nested too deeply and very long texts are cut. Such values
    come from outside, mostly from a model's arguments.
    """
    return parse_logged_event(
        _storable_value(event.model_dump(mode="python", **_dump_options(event)), 0)
    )


def _storable_value(value: Any, depth: int) -> Any:
    if depth > MAX_NESTING_DEPTH:
        return "[cut: nested too deeply]"
    match value:
        case str():
            # JSON and UTF-8 have no lone surrogates (RFC 8259 section 8.2). A round trip through
            # UTF-16 joins valid pairs and replaces the others.
            text = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            excess = len(text) - MAX_TEXT_LENGTH
            return text if excess <= 0 else f"{text[:MAX_TEXT_LENGTH]}[cut: {excess} characters]"
        case dict():
            return {
                _storable_value(key, depth): _storable_value(item, depth + 1)
                for key, item in value.items()
            }
        case list() | tuple():
            return [_storable_value(item, depth + 1) for item in value]
        case _:
            return value


class _DumpOptions(TypedDict, total=False):
    exclude_unset: bool
    exclude_none: bool


def _dump_options(event: Event) -> _DumpOptions:
    """Return the options of the dump: an event that was read keeps the fields it came with.

    Only parsing sets `kind` explicitly, so `kind` tells whether an event was read.
    """
    if "kind" in event.model_fields_set:
        return {"exclude_unset": True}
    return {"exclude_none": True}


def own_fields(action: ActionBase) -> dict[str, Any]:
    """Return the fields that only this type of action has, as JSON values."""
    names = type(action).model_fields.keys() - ActionBase.model_fields.keys() - {"kind"}
    return action.model_dump(mode="json", include=names)


def dump_line(event: Event) -> str:
    """Return the event as one line of JSON, without the newline.

    Raises PydanticSerializationError for values that `make_storable` removes.
    """
    return event.model_dump_json(**_dump_options(event))


def stored_line(event: Event) -> str:
    """Return the line that a store keeps. Raises UnstorableEvent if no store can hold the event."""
    try:
        line = dump_line(event)
    except PydanticSerializationError as error:
        raise UnstorableEvent(f"event {event.id} can't be written as JSON: {error}") from error
    # A character has four bytes at most, so only very long lines need to be counted exactly.
    if 4 * len(line) >= MAX_LINE_BYTES and len(line.encode()) >= MAX_LINE_BYTES:
        raise UnstorableEvent(f"event {event.id} is larger than {MAX_LINE_BYTES:,} bytes")
    return line


DAMAGE_HINT = "check the path; `resolver trace LOG` shows the events before the damage"


def read_log(path: Path) -> Iterator[Event]:
    """Yield all complete events of a log file, checking that their numbers have no gap.

    An incomplete last line is left out: it is what remains if the writer is killed during a write.
    Raises LogError, which names the line and the problem.
    """
    with open_log_file(path) as file:
        is_empty = True
        for event in check_lines(str(path), "line", complete_lines(path, file)):
            is_empty = False
            yield event
    if is_empty:
        raise LogError(f"{path} has no event in it", DAMAGE_HINT)


def ends_with_newline(path: Path) -> bool:
    """Return True if the last line of a log file ends with a newline. Raises LogError."""
    with open_log_file(path) as file:
        size = file.seek(0, os.SEEK_END)
        return size == 0 or os.pread(file.fileno(), 1, size - 1) == b"\n"


def open_log_file(path: Path) -> BinaryIO:
    """Open the file for reading. Anything but a regular file is refused before it can block."""
    try:
        # Opening a FIFO without a writer would block: fifo(7).
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except IsADirectoryError as error:
        raise LogError(f"{path} is a folder, not an event log", DAMAGE_HINT) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise LogError(f"{path} can't be read: {reason}", "check the path") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise LogError(f"{path} is not a regular file", "save the log into a file first")
    return file


def complete_lines(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines that end with a newline.

    Raises LogError for a line of MAX_LINE_BYTES or more.
    """
    number = 0
    while line := _next_line(path, file, number):
        if line.endswith(b"\n"):
            yield line
        elif len(line) >= MAX_LINE_BYTES:
            raise LogError(
                f"{path}, line {number + 1}: longer than {MAX_LINE_BYTES:,} bytes", DAMAGE_HINT
            )
        number += 1


def _next_line(path: Path, file: BinaryIO, number: int) -> bytes:
    try:
        return file.readline(MAX_LINE_BYTES)
    except OSError as error:
        raise LogError(f"{path}, line {number + 1} can't be read: {error.strerror}") from error


def check_lines(
    origin: str, unit: str, lines: Iterable[bytes | str], first: int = 0
) -> Iterator[Event]:
    """Yield the events of `lines`, checking that they are numbered `first`, `first` + 1, ...
    without gap.

    origin, unit: used in error messages, such as "FILE, line 3". Raises LogError.
    """
    for number, line in enumerate(lines, first):
        try:
            event = parse_line(line)
        except LogError as error:
            message = f"{origin}, {unit} {number + 1}: {error.what}"
            raise LogError(message, error.next_step or DAMAGE_HINT) from error
        if event.id != number:
            raise LogError(
                f"{origin}, {unit} {number + 1}: the event's id is {event.id}, not {number}",
                f"events are numbered 0, 1, 2, ... without gap; {DAMAGE_HINT}",
            )
        yield event
