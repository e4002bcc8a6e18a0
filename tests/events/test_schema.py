"""Tests of the log's format: consistent, described, published as a schema, and stable."""

import json
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from resolver.events.actions import Action
from resolver.events.log import (
    EVENT_TYPES,
    KINDS,
    OBSERVATION_TYPES,
    dump_line,
    parse_line,
)
from resolver.events.observations import AgentStateChanged, ErrorObservation, Null
from resolver.events.schema import log_schema
from resolver.events.state import State
from tests.events.strategies import logs

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("golden-1.jsonl")
RECORDING = ROOT / "resolver" / "demo" / "recording.jsonl"


@cache
def validator() -> Draft202012Validator:
    checker = Draft202012Validator.FORMAT_CHECKER
    return Draft202012Validator(log_schema(), format_checker=checker)


def test_each_runnable_action_has_one_observation_and_each_observation_answers_something() -> None:
    answers = {t.observation for t in get_args(Action)} - {None}
    assert answers | {ErrorObservation, AgentStateChanged, Null} == set(OBSERVATION_TYPES), (
        "name the observation in the action, and add it to the union `Observation`"
    )


def test_every_type_and_every_field_is_described() -> None:
    bare = {
        f"{event_type.__name__}.{name}"
        for event_type in EVENT_TYPES
        for name, field in event_type.model_fields.items()
        if not field.description and name != "kind"
    }
    bare |= {event_type.__name__ for event_type in EVENT_TYPES if not event_type.__doc__}
    assert bare == set(), "describe them: docs/reference/events.md shows it"


@pytest.mark.parametrize("path", [RECORDING, GOLDEN], ids=lambda p: p.stem)
def test_existing_logs_fit_the_schema(path: Path) -> None:
    for line in path.read_text().splitlines():
        validator().validate(json.loads(line))


@given(logs(max_size=4))
def test_any_log_fits_the_schema(events: list[Any]) -> None:
    for event in events:
        validator().validate(json.loads(dump_line(event)))


COMMON = {"id": 3, "timestamp": "2026-01-01T00:00:00Z", "source": "agent"}


def test_the_schema_allows_unknown_kinds_and_fields() -> None:
    validator().validate({**COMMON, "kind": "from_the_future", "anything": [1]})
    reply = {"model": "m", "new": 1, "tokens": {"input": 1, "newer": 2}}
    validator().validate({**COMMON, "kind": "model_replied", "completion": reply, "newest": None})


def test_the_golden_log_has_every_kind() -> None:
    there = {json.loads(line)["kind"] for line in GOLDEN.read_text().splitlines()}
    assert there == KINDS, "append a line of the new kind; never change one that is there"


def test_the_golden_log_is_read_and_written_unchanged() -> None:
    """A line that fails here exists in logs of users, which have to stay readable."""
    for number, line in enumerate(GOLDEN.read_text().splitlines()):
        event = parse_line(line)
        assert event.id == number
        assert type(event).__name__ != "Unknown"
        assert not event.model_extra
        assert json.loads(dump_line(event)) == json.loads(line)


def test_the_golden_log_gives_the_same_state() -> None:
    state = State.fold(map(parse_line, GOLDEN.read_text().splitlines()))
    assert (state.iterations, state.cost, state.limits.max_iterations) == (1, 0.0031, 50)
    assert state.files_touched == ["new.py"]
    assert [c.command for c in state.commands] == ["ls"]
    assert state.run_state == "paused"
    assert [item.title for item in state.plan] == ["write a test", "mend it"]
