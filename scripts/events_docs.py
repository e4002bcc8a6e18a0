"""Prints docs/events.md from the event types; a test holds the file against it."""

from typing import Any, get_args

from resolver.events.base import SCHEMA_VERSION as VERSION
from resolver.events.base import ActionBase, EventBase, ObservationBase
from resolver.events.log import (
    EVENT_TYPES,
    MAX_LINE_BYTES,
    OBSERVATION_BY_ACTION,
    Action,
    Lifecycle,
    Observation,
    log_schema,
)
from resolver.events.stream import ROLES

MEGABYTES = MAX_LINE_BYTES // 1024**2
HEAD = f"""# The event log

Made from `resolver/events/` by `make docs`. A run is one append-only list of events; whatever
is known of the run is derived from it. `events.jsonl` has one event a line, numbered 0, 1, 2,
... without gap, and each is on disk before anything is done about it. `jq` reads it:

    jq -r 'select(.kind == "cmd_run") | .command' events.jsonl

## Format
- The first line, `run_started`, has `schema_version`; this is version {VERSION}. `resolver
  trace --schema` prints the JSON schema (draft 2020-12) of a line.
- New kinds and new optional fields don't change the version. A Resolver that does not know them
  keeps them as they are. A log with a higher version is refused: its events may mean something
  else.
- A field that is not there has its default. A line is shorter than {MEGABYTES} MiB.
- A last line without its end is what a kill in the middle of a write leaves: it is no event.
  When the run goes on, it is moved to `events.jsonl.torn`.

## Where it is kept
A file, or a database: table `resolver_events` (`run`, `id`, `kind`, `data`), one row an event,
on SQLite or PostgreSQL. `resolver trace` reads both:

    resolver trace DIR
    resolver trace sqlite:///runs.db#RUN
    resolver trace postgresql://USER:PASSWORD@HOST/DATABASE#RUN

## A damaged log
Reading one ends with an error that names the line and what is wrong with it. `resolver trace
LOG --repair` writes every line that is an event into a new file (`events.repaired.jsonl`, or
`--output FILE`), numbers them anew, lets `cause`, `reply`, `delegate` and `forgotten` name the
same events as before, and tells line by line what was left out. The damaged log is only read.

## Who is told
Of each event the subscribers are told in this order of roles, and within a role in the order in
which they came: {", ".join(ROLES)}.
"""


def describe_type(schema: dict[str, Any]) -> str:
    """A field's type in a few words."""
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
    """The fields of a type, without those that all its neighbours have."""
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
    """One chapter: every type with its fields."""
    definitions = log_schema()["$defs"]
    known = {*common.model_fields, "kind"}
    parts = [f"\n## {title}\n"]
    for event_type in types:
        kind = event_type.model_fields["kind"].default
        answer = OBSERVATION_BY_ACTION.get(event_type)
        answer_note = f" Answered by `{answer.model_fields['kind'].default}`." if answer else ""
        parts.append(f"\n### `{kind}`\n{event_type.__doc__}{answer_note}\n")
        parts.append(format_table(definitions[event_type.__name__], known))
    return "".join(parts)


def common_section(title: str, base: type[EventBase], without: type[EventBase] | None) -> str:
    """The fields that all types of a chapter have."""
    left_out = set(without.model_fields) if without else set()
    return f"\n## {title}\n" + format_table(base.model_json_schema(), left_out)


def values_section() -> str:
    """What events are made of besides plain values."""
    names = {event_type.__name__ for event_type in EVENT_TYPES}
    parts = ["\n## What stands in fields\n"]
    for name, definition in log_schema()["$defs"].items():
        if name in names:
            continue
        values = [f"`{value}`" for value in definition.get("enum", ())]
        one_of = f" One of {', '.join(values)}." if values else ""
        parts.append(f"\n### {name}\n{definition.get('description', '')}{one_of}\n")
        parts.append(format_table(definition, set()))
    return "".join(parts)


def events_page() -> str:
    """The whole page."""
    return "".join(
        [
            HEAD,
            common_section("Every event", EventBase, None),
            common_section("Every action, besides", ActionBase, EventBase),
            format_section("Actions", get_args(Action), ActionBase),
            common_section("Every observation, besides", ObservationBase, EventBase),
            format_section("Observations", get_args(Observation), ObservationBase),
            format_section("The run's own record", get_args(Lifecycle), EventBase),
            values_section(),
        ]
    )


if __name__ == "__main__":
    print(events_page(), end="")
