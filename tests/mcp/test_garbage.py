"""Property tests: servers that send anything are opened, called and closed."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resolver.events.actions import McpCall
from resolver.mcp.servers import McpServers
from resolver.mcp.transports import Address, Endpoint, Launch
from tests.mcp.test_schemas import json_values

GREETING = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "x", "version": "1"}}
ids = st.sampled_from([1, 2, 3, "1", None, -1, 2**70, True])
messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": ids,
        "method": st.sampled_from(["ping", "notifications/tools/list_changed", "x", "roots/list"]),
        "params": json_values,
        "result": json_values
        | st.just({**GREETING, "capabilities": {}})
        | st.fixed_dictionaries({"tools": json_values, "nextCursor": json_values}),
        "error": json_values,
    },
)
said = messages.map(lambda m: json.dumps(m).encode()) | st.binary(max_size=60)


def open_and_call(way: Launch | Address) -> list[str]:
    """Open the server, call its tool, and return the warnings."""
    notes: list[str] = []
    endpoint = Endpoint("t", way, lambda _: True, 0.5)
    with McpServers([endpoint], str, lambda text: None, notes.append, start_seconds=0.5) as servers:
        assert servers.call(McpCall(server="t", name="x")).content
    return notes


class Saying:
    """A program that writes this and ends, whatever it is asked."""

    exit_details = "exit code 0"

    def __init__(self, output: bytes) -> None:
        self._output = output

    def read(self) -> bytes:
        output, self._output = self._output, b""
        return output

    def write(self, data: bytes) -> None:
        """Read it."""

    def close(self) -> None:
        """End, which it has."""


@given(st.lists(said, max_size=8))
def test_any_output_of_a_program_gives_an_observation_or_a_note(lines: list[bytes]) -> None:
    assert open_and_call(lambda: Saying(b"\n".join(lines) + b"\n"))


@contextmanager
def answering(answers: list[tuple[int, str, bytes]]) -> Iterator[str]:
    """A server that gives these answers in turn, the last for ever."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, kind, body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_error(405)

        do_DELETE = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


kinds = st.sampled_from(["application/json", "text/event-stream", "text/html", ""])
bodies = said | said.map(lambda body: b"event: message\ndata: " + body + b"\n\n")


@given(st.lists(st.tuples(st.sampled_from([200, 202, 204, 302, 400, 404, 500]), kinds, bodies),
                min_size=1, max_size=4))  # fmt: skip
def test_any_response_gives_an_observation_or_a_note(
    answers: list[tuple[int, str, bytes]],
) -> None:
    with answering(answers) as url:
        open_and_call(Address(url))
