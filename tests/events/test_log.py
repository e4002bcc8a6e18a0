"""One line of a log: written, read back, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import LogError
from resolver.events.log import (
    ACTION_TYPES,
    KINDS,
    OBSERVATION_TYPES,
    RUNNABLE,
    Unknown,
    dump_line,
    parse_event,
    parse_line,
)
from tests.events.strategies import logs


@given(logs())
def test_every_event_survives_the_round_trip(events) -> None:
    for event in events:
        line = dump_line(event)
        assert "\n" not in line
        assert parse_line(line.encode()) == event


def test_an_unknown_kind_is_kept_verbatim() -> None:
    data = {"id": 3, "kind": "from_the_future", "payload": {"a": [1, None]}, "none": None}
    event = parse_event(data)
    assert isinstance(event, Unknown)
    assert json.loads(dump_line(event)).items() >= data.items()


def test_a_new_field_of_a_known_kind_is_kept() -> None:
    event = parse_event({"id": 0, "kind": "think", "content": "x", "colour": "blue"})
    assert json.loads(dump_line(event))["colour"] == "blue"


def test_an_unknown_price_stays_unknown() -> None:
    data = {"kind": "model_replied", "completion": {"model": "m", "cost": None}}
    event = parse_line(dump_line(parse_event(data)).encode())
    assert event.completion.cost is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"", "not a line of JSON"),
        (b"[1]", "JSON object"),
        (b"{}", "no kind"),
        (b'{"kind": 7}', "no kind"),
        (b'{"kind": "cmd_run", "id": 4}', "event 4 (cmd_run): cmd_run.command: Field required"),
        (b"\xff\xfe", "not a line of JSON"),
    ],
)
def test_a_line_that_is_no_event_is_told_in_words(line: bytes, says: str) -> None:
    with pytest.raises(LogError) as caught:
        parse_line(line)
    assert says in caught.value.what


@given(st.binary(max_size=200))
def test_any_bytes_give_an_event_or_a_log_error(line: bytes) -> None:
    try:
        parse_line(line)
    except LogError as error:
        assert error.what


@given(
    st.dictionaries(st.text(max_size=8), st.integers() | st.text() | st.none()),
    st.sampled_from(sorted(KINDS)),
)
def test_any_fields_give_an_event_or_a_log_error(data, kind) -> None:
    try:
        parse_event({**data, "kind": kind})
    except LogError as error:
        assert kind in error.what


def test_each_runnable_action_has_one_observation() -> None:
    assert set(RUNNABLE) <= set(ACTION_TYPES)
    assert set(RUNNABLE.values()) <= set(OBSERVATION_TYPES)
