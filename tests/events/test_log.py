"""Tests of writing and reading a line of the log."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import LogError
from resolver.events.actions import CmdRun
from resolver.events.log import (
    Unknown,
    dump_line,
    own_fields,
    parse_line,
    parse_logged_event,
)
from tests.events.strategies import any_event, json_values, text


@given(any_event, text, json_values)
def test_a_newer_versions_field_of_any_kind_is_kept(event, name: str, value) -> None:
    data = {**json.loads(dump_line(event)), f"new_{name}": value}
    line = json.dumps(data)
    assert json.loads(dump_line(parse_line(line))) == data
    assert json.loads(dump_line(parse_logged_event(data))) == data


@given(st.dictionaries(text.map(lambda key: f"x{key}"), json_values, max_size=4))
def test_an_unknown_kind_is_kept_verbatim(more) -> None:
    data = {"id": 3, "kind": "from_the_future", **more}
    event = parse_line(json.dumps(data))
    assert isinstance(event, Unknown)
    assert json.loads(dump_line(event)) == data


def test_the_own_fields_of_an_action_are_what_a_sandbox_needs_to_execute_it() -> None:
    action = CmdRun(id=3, command="ls", thought="look around")
    assert own_fields(action) == {"command": "ls", "is_input": False, "timeout": None}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"", "not a line of JSON: EOF"),
        (b"[1]", "JSON object"),
        (b"{}", "no kind"),
        (b'{"kind": 7}', "no kind"),
        (b'{"kind": "cmd_run", "id": 4}', "event 4 (cmd_run): command: Field required"),
        (b'{"kind": "from_the_future", "id": "x"}', "event x (from_the_future): id: Input"),
        (b'{"kind": "null", "timestamp": "2026-01-01T00:00:00"}', "timestamp: Input should have"),
        (b'{"kind": "null", "source": "moon"}', "source: Input should be"),
        (b"\xff\xfe", "not UTF-8 text, at byte 1 of the line"),
        (b'{"kind": "think", "content": "a\xe2\x28b"}', "not UTF-8 text, at byte 32 of the line"),
        (b"\x00" * 90, "not a line of JSON"),
        (b"[" * 100_000, "not a line of JSON: recursion limit exceeded"),
        (b'{"kind": "null", "id": ' + b"9" * 6000 + b"}", "number out of range"),
        (
            b'{"kind":"delegate_event","delegate":1,"event":{"kind":"think"}}',
            "event None (think): content: Field required",
        ),
    ],
)
def test_an_invalid_line_is_explained(line: bytes, says: str) -> None:
    with pytest.raises(LogError) as caught:
        parse_line(line)
    assert says in caught.value.what


@given(st.binary(max_size=200))
def test_any_bytes_give_an_event_or_a_log_error(line: bytes) -> None:
    try:
        parse_line(line)
    except LogError as error:
        assert error.what
