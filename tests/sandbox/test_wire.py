"""Tests of encoding and decoding frames, with any input."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.sandbox import wire

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), values))
def test_an_object_is_decoded_unchanged(message: dict[str, object]) -> None:
    message["jsonrpc"] = "2.0"
    frame = wire.encode(message)
    assert frame.endswith(b"\n") and frame.count(b"\n") == 1
    assert wire.decode(frame) == message


@given(st.binary() | values.map(lambda value: json.dumps(value).encode()))
def test_any_line_is_an_object_or_a_wire_error(line: bytes) -> None:
    try:
        assert wire.decode(line)["jsonrpc"] == "2.0"
    except wire.WireError as error:
        assert error.code in (wire.PARSE_ERROR, wire.INVALID_REQUEST)


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"a":' * 100_000, b"1" * 10_000, b""])
def test_hostile_numbers_and_nesting_are_refused(line: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.decode(line)


def test_a_frame_over_the_limit_is_refused() -> None:
    with pytest.raises(wire.WireError) as caught:
        wire.decode(b" " * (wire.MAX_FRAME + 1))
    assert caught.value.code == wire.PARSE_ERROR
