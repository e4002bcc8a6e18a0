"""Targets: what the sandbox sends, the event log and requests on the network."""

import json
import tempfile
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from resolver.errors import LogError, SandboxError
from resolver.events.log import dump_line, parse_line, read_log
from resolver.events.state import State
from resolver.runtime.client import WireClient, take_file, wrap_file
from resolver.runtime.tunnel import check_first_bytes
from resolver.sandbox import wire
from resolver.sandbox.request_head import BadRequest, read_head
from resolver.sandbox.textfile import (
    decode_text,
    describe_nearest,
    find_positions,
    hunk,
    split_lines,
)
from resolver.security.redaction import Redactor
from resolver.trace.html import render_html, render_json
from resolver.trace.markdown import render_comment_trace, render_markdown
from resolver.trace.text import live_line, render_text
from resolver.trace.untrusted_text import utf16_length
from tests.fuzz.target import as_json, as_text, fuzzed
from tests.runtime.test_egress import client_hello

GOLDEN = (Path(__file__).parents[1] / "events" / "golden-1.jsonl").read_bytes().splitlines()
GOLDEN_OBJECTS = tuple(json.loads(line) for line in GOLDEN)


@fuzzed(*GOLDEN, objects=GOLDEN_OBJECTS)
def log_line(data: bytes) -> None:
    """A line of the event log, also of a newer version: an event that survives, or a LogError."""
    try:
        event = parse_line(data)
    except LogError as error:
        assert error.what
    else:
        stored = dump_line(event)
        assert dump_line(parse_line(stored)) == stored  # NaN is not equal to itself


def _logs() -> tuple[bytes, ...]:
    return (
        b"\n".join(GOLDEN[:4]) + b"\n",
        b"\n".join(GOLDEN[:12]) + b"\n",
        b"\n".join(GOLDEN) + b"\n",
    )


@fuzzed(*_logs(), tokens=('{"id":0,', "\n", '"id":99', '"cause":5', "{}", '"schema_version":2'))
def damaged_log(data: bytes) -> None:
    """A damaged log: read up to the damage, with a LogError that says what it is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events.jsonl")
        path.write_bytes(data)
        state = State()
        try:
            for event in read_log(path):
                state.apply(event)
        except LogError as error:
            assert error.what and error.next_step
        assert [event.id for event in state.events] == list(range(len(state.events)))


@fuzzed(objects=(list(GOLDEN_OBJECTS[:12]), *([event] for event in GOLDEN_OBJECTS)))
def trace_of_log(data: bytes) -> None:
    """Any log as markdown, HTML, comment, terminal text and JSON: rendered, within its limit."""
    value = as_json(data)
    events = []
    for document in value if isinstance(value, list) else [value]:
        with suppress(LogError):
            events.append(parse_line(json.dumps(document)))
    State.fold(events)
    assert "\x1b" not in render_markdown(events) + render_text(events)
    assert utf16_length(render_comment_trace(events, 3_000)) <= 3_000
    assert render_html(events).count("<script") == 1
    json.loads(render_json(events))
    for event in events:
        assert "\n" not in (live_line(event) or "")


FRAMES = (
    {"jsonrpc": "2.0", "id": 1, "result": {"version": 1}},
    {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no"}},
    {
        "jsonrpc": "2.0",
        "method": "tunnel_open",
        "params": {"tunnel": 1, "host": "a.b", "port": 443},
    },
    {"jsonrpc": "2.0", "method": "tunnel_data", "params": {"tunnel": 1, "data": "eA=="}},
    {"jsonrpc": "2.0", "method": "tunnel_credit", "params": {"tunnel": 1, "count": 9}},
    {
        "jsonrpc": "2.0",
        "method": "tunnel_close",
        "params": {"tunnel": 1, "status": 403, "reason": "x"},
    },
    {"jsonrpc": "2.0", "method": "output", "params": {"request": 1, "text": "a\nb"}},
)


@fuzzed(
    *(json.dumps(frame) for frame in FRAMES),
    objects=FRAMES,
    tokens='"id": "method": "params": {"tunnel":1} \n',
)
def wire_frame(data: bytes) -> None:
    """A line of the wire, also a notification: a message that survives, or a WireError."""
    with suppress(wire.WireError):
        message = wire.decode(data)
        assert "NaN" in json.dumps(message) or wire.decode(wire.encode(message)) == message
        method = message.get("method")
        if method == wire.OUTPUT_METHOD:
            reported = wire.output_notice(data, message.get("params"))
            assert len(reported.text) <= wire.MAX_OUTPUT_TEXT
        if not isinstance(method, str) or method not in wire.TUNNEL_METHODS:
            return
        frame = wire.tunnel_frame(method, message.get("params"))
        notice = wire.decode(wire.tunnel_notice(frame))
        assert wire.tunnel_frame(notice["method"], notice["params"]) == frame


class _Recording:
    """A channel that plays a recorded stream from the sandbox."""

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = iter(parts)
        self._asked = threading.Event()

    def send(self, data: bytes) -> None:
        self._asked.set()

    def receive(self) -> bytes:
        self._asked.wait()
        return next(self._parts, b"")

    def close(self) -> None:
        self._asked.set()

    def exit_details(self) -> str:
        return ""


REPORT = {
    "output": "x",
    "exit_code": 0,
    "cwd": "/w",
    "seconds": 0.5,
    "changed": {"paths": ["a"], "count": 1},
}


@fuzzed(
    *(json.dumps(frame) + "\n" for frame in FRAMES),
    objects=({"jsonrpc": "2.0", "id": 1, "result": REPORT}, *FRAMES),
    tokens=("\n", '{"jsonrpc":"2.0","id":1,"result":{}}\n'),
)
def wire_stream(data: bytes) -> None:
    """A stream from a sandbox that was taken over: an answer of the right type, or a SandboxError."""
    stream = data if data.endswith(b"\n") else data + b"\n"
    half = len(stream) // 2
    client = WireClient(_Recording([stream[:half], stream[half:]]))  # type: ignore[arg-type]
    shown: list[str] = []
    try:
        client.call("run_command", {"command": "x"}, wire.CommandReport, 5, shown.append)
    except (SandboxError, wire.WireError):
        pass
    finally:
        client.close()
    assert all(len(text) <= wire.MAX_OUTPUT_TEXT for text in shown)


@fuzzed(
    b"".join(wrap_file("name", iter([b"hello" * 200]))),
    b"".join(wrap_file("a" * 120, iter([b""]))),
    tokens=("ustar", "\x00" * 9, "77777777777"),
)
def sandbox_archive(data: bytes) -> None:
    """An archive out of the sandbox: one regular file, or a SandboxError and no file."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "file")
        try:
            take_file(iter([data[:700], data[700:]]), out, 10_000)
        except SandboxError:
            assert not out.exists()
        else:
            assert out.stat().st_size <= 10_000


HEADS = (
    b"GET http://a.example/b?c HTTP/1.1\r\nHost: a.example\r\nConnection: x, close\r\nContent-Length: 3\r\n\r\n",
    b"CONNECT a.example:443 HTTP/1.1\r\nHost: b\r\n\r\n",
    b"POST http://[::1]:80/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
)


@fuzzed(
    *HEADS,
    tokens=(
        "\r\n",
        "\n",
        " ",
        "Host: x",
        "Content-Length: 1",
        "Transfer-Encoding: chunked",
        "http://",
        "@",
        "%00",
        ":99999",
        "[::1]",
    ),
)
def proxy_request(data: bytes) -> None:
    """Head of a request to the sandbox's proxy: one host and one length, or a BadRequest."""
    with suppress(BadRequest):
        request = read_head(data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
        assert 0 < request.port < 65_536 and request.host
        assert not set(request.host) & set("@/?#\\ \r\n\0")
        fields = request.head.split(b"\r\n")
        assert sum(field.lower().startswith(b"host:") for field in fields) == (not request.tunnel)
        assert not any(b"\n" in field or b"\r" in field for field in fields)
        if request.head:
            assert read_head(
                request.head.replace(b" /", b" http://" + request.host.encode() + b"/", 1)
            )


@fuzzed(
    *HEADS,
    client_hello("evil.example"),
    b"GET / HTTP/1.1\r\nHost: pypi.org\r\n\r\n",
    b"SSH-2.0-x\r\n",
    tokens=("\x16\x03\x01", "Host: pypi.org\r\n", "Host:", "\r\n\r\n", "GET "),
)
def tunnel_first_bytes(data: bytes) -> None:
    """First bytes of a connection: allowed, refused or not enough; never undecided for long."""
    assert check_first_bytes(data, "pypi.org", 443) in {None, ""} or data
    if data:
        assert check_first_bytes(data + b"x" * 70_000, "pypi.org", 443) is not None


FILES = ("a = 1\nb = 2\n", "a\r\nb\r\n", b"\xff\xfea\0\n\0", b"\xef\xbb\xbfx", b"\xe9\n")


@fuzzed(*FILES)
def edited_file(data: bytes) -> None:
    """Files that the agent edits: decoded and encoded to the same bytes, and a hunk of the change."""
    file = decode_text(data)
    assert file.encoded(file.text) == data or "\ud800" in file.text
    split_lines(file.text)
    hunk(file.text, file.text[1:], "a")
    find_positions(file.text[:500], "a\n")
    describe_nearest(split_lines(file.text[:2_000]), file.text[:60])


SECRET = "ghs_" + "aB3dE5gH7jK9" * 4


@fuzzed(
    f"token {SECRET} end",
    SECRET.encode().hex(),
    json.dumps(SECRET),
    tokens=(SECRET, SECRET[:20], SECRET[9:], "\x1b[0m", "\u200b", "%67", "\\u0067"),
)
def redacted_text(data: bytes) -> None:
    """Text with secrets: no piece of 16 characters of the secret stays."""
    text = Redactor([SECRET]).redact_text(as_text(data))
    assert not any(SECRET[start : start + 16] in text for start in range(len(SECRET) - 15))


NOW = datetime(2026, 11, 20, tzinfo=UTC)
