"""Tests of encoding and decoding frames, with any input."""

import base64
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
        wire.decode(b'{"jsonrpc":"2.0"}'.ljust(wire.MAX_FRAME + 1))
    assert caught.value.code == wire.PARSE_ERROR


def data_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


BOUNDS: list[tuple[str, str, object, object, object, object]] = [
    # method, parameter, least and most that are allowed, and what is just outside of them
    ("tunnel_end", "tunnel", 1, 2**31, 0, 2**31 + 1),
    ("tunnel_open", "port", 1, 65535, 0, 65536),
    ("tunnel_open", "host", "", "h" * 1024, None, "h" * 1025),
    ("tunnel_credit", "count", 1, wire.TUNNEL_WINDOW, 0, wire.TUNNEL_WINDOW + 1),
    ("tunnel_close", "status", 1, 599, 0, 600),
    ("tunnel_close", "reason", "", "r" * 1024, None, "r" * 1025),
    ("tunnel_data", "data", data_of(b"x"), data_of(b"x" * wire.TUNNEL_CHUNK), "",
     data_of(b"x" * (wire.TUNNEL_CHUNK + 1))),
]  # fmt: skip


@pytest.mark.parametrize(("method", "name", "least", "most", "below", "above"), BOUNDS)
def test_each_parameter_of_a_tunnel_has_its_bounds(
    method: str, name: str, least: object, most: object, below: object, above: object
) -> None:
    given_: dict[str, object] = {"tunnel": 7, "host": "a.example", "port": 443, "count": 5}
    given_ |= {"status": 403, "reason": "no", "data": data_of(b"abc")}
    for value in (least, most):
        assert wire.tunnel_frame(method, given_ | {name: value}).method == method
    for value in (below, above, None, True, 1.5, ["x"]):
        with pytest.raises(wire.WireError) as caught:
            wire.tunnel_frame(method, given_ | {name: value})
        assert caught.value.code == wire.INVALID_PARAMS
        assert name in caught.value.message
        assert not isinstance(most, int) or f"up to {most}" in caught.value.message


@pytest.mark.parametrize(
    "frame",
    [
        wire.TunnelFrame("tunnel_open", 1, host="a.example", port=443),
        wire.TunnelFrame("tunnel_opened", 2),
        wire.TunnelFrame("tunnel_data", 3, data=b"\0\xff"),
        wire.TunnelFrame("tunnel_end", 4),
        wire.TunnelFrame("tunnel_credit", 5, count=9),
        wire.TunnelFrame("tunnel_close", 6, status=403, reason="no"),
    ],
)
def test_a_notice_comes_back_as_the_frame_that_it_was(frame: wire.TunnelFrame) -> None:
    message = wire.decode(wire.tunnel_notice(frame))
    assert message.keys() == {"jsonrpc", "method", "params"}
    assert wire.tunnel_frame(message["method"], message["params"]) == frame
