"""Prints docs/reference/events.md from the event types. A test compares the file with it."""

from inspect import cleandoc
from typing import Any, get_args

from resolver.events.actions import Action
from resolver.events.base import SCHEMA_VERSION as VERSION
from resolver.events.base import ActionBase, EventBase, ObservationBase
from resolver.events.log import EVENT_TYPES, MAX_LINE_BYTES, Lifecycle
from resolver.events.observations import Observation
from resolver.events.schema import log_schema
from scripts.settings_docs import origin_note

MEGABYTES = MAX_LINE_BYTES // 1024**2
HEAD = f"""# The event log

A run is recorded as one append-only list of events. The state of the run is derived from it.
`events.jsonl` contains one event per line, numbered 0, 1, 2, ... without gaps. Each event is on
disk before anything acts on it. You can read the file with `jq`:

    jq -r 'select(.kind == "cmd_run") | .command' events.jsonl

## Format
- The first line, `run_started`, contains `schema_version`. This page describes version {VERSION}.
  `resolver trace --schema` prints the JSON schema (draft 2020-12) of a line.
- New kinds of events and new optional fields don't change the version. A version of Resolver that
  does not know them keeps them unchanged. A log with another version is refused, because its
  events may have another meaning.
- A missing field has its default. A line is shorter than {MEGABYTES} MiB.
- An incomplete last line is left behind if Resolver is killed while it writes. It does not count as
  an event, and is removed when the run is resumed.

## Where it is stored
In the file `events.jsonl` of the run's folder. A server keeps each event in its store of runs
(`RESOLVER_RUN_STORE`), before anything acts on it: the objects `RUN/log/NUMBER-ID` have one or more
lines each, from the event `ID` on. `resolver trace` reads both:

    resolver trace DIR

    resolver trace s3://BUCKET/PREFIX/RUN

## A damaged log
A damaged log ends before its first damaged line. `resolver trace LOG` shows the events up to there
and names the line and the fault; such a log can't be resumed or replayed.

## Subscribers
After an event is stored, the subscribers are called in the order of their subscription: the state
first, then what shows the run's progress, then what logs the sandbox's connections.
"""


def describe_type(schema: dict[str, Any]) -> str:
    """Describe a field's type in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return f'`"{schema["const"]}"`'
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(describe_type(option) for option in schema["anyOf"])
    if schema.get("type") == "array" and "items" in schema:
        return f"array of {describe_type(schema['items'])}"
    return str(schema.get("type", "any"))


def format_table(definition: dict[str, Any], left_out: set[str]) -> str:
    """Return a table of the fields of a type, except for `left_out`; "" if there are none."""
    required = definition.get("required", ())
    rows = [
        f"| `{name}` | {describe_type(field)} | {'yes' if name in required else ''} "
        f"| {field.get('description', '')} |"
        for name, field in definition.get("properties", {}).items()
        if name not in left_out
    ]
    if not rows:
        return ""
    return "\n".join(["\n| Field | Type | Required | Meaning |", "|---|---|---|---|", *rows]) + "\n"


def format_section(title: str, types: tuple[type[EventBase], ...], common: type[EventBase]) -> str:
    """Return a section that lists the types with their fields, except for those of `common`."""
    definitions = log_schema()["$defs"]
    known = {*common.model_fields, "kind"}
    parts = [f"\n## {title}\n"]
    for event_type in types:
        kind = event_type.model_fields["kind"].default
        answer = event_type.observation if issubclass(event_type, ActionBase) else None
        answer_note = f" Answered by `{answer.model_fields['kind'].default}`." if answer else ""
        parts.append(f"\n### `{kind}`\n{cleandoc(event_type.__doc__ or '')}{answer_note}\n")
        parts.append(format_table(definitions[event_type.__name__], known))
    return "".join(parts)


def common_section(title: str, base: type[EventBase], without: type[EventBase] | None) -> str:
    """Return a section with the fields that all types of the following section have."""
    left_out = set(without.model_fields) if without else set()
    return f"\n## {title}\n" + format_table(base.model_json_schema(), left_out)


def values_section() -> str:
    """Return the section of the models that fields of events contain."""
    names = {event_type.__name__ for event_type in EVENT_TYPES}
    parts = ["\n## Values in fields\n"]
    for name, definition in log_schema()["$defs"].items():
        if name in names:
            continue
        values = [f"`{value}`" for value in definition.get("enum", ())]
        one_of = f" One of {', '.join(values)}." if values else ""
        parts.append(f"\n### {name}\n{definition.get('description', '')}{one_of}\n")
        parts.append(format_table(definition, set()))
    return "".join(parts)


def events_page() -> str:
    """Return the whole page."""
    return "".join(
        [
            HEAD,
            common_section("Fields of every event", EventBase, None),
            common_section("Additional fields of every action", ActionBase, EventBase),
            format_section("Actions", get_args(Action), ActionBase),
            common_section("Additional fields of every observation", ObservationBase, EventBase),
            format_section("Observations", get_args(Observation), ObservationBase),
            format_section("Lifecycle events", get_args(Lifecycle), EventBase),
            values_section(),
            origin_note("resolver/events/"),
        ]
    )


if __name__ == "__main__":
    print(events_page(), end="")
