"""The limits of the web server: how large a head may be, and how many connections it has."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from resolver.entrypoints.http_server import MAX_HEAD_BYTES
from tests.webhook.serving import ServedApp

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"
LIMIT = 8


async def answer(_scope: Any, receive: Any, send: Any) -> None:
    """Answer 200 once the body is whole."""
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] == "http.request":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def connect(served: ServedApp, said: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", served.port), timeout=30)
    made.sendall(said)
    return made


@pytest.fixture
def served() -> Iterator[ServedApp]:
    made = ServedApp(answer, LIMIT)
    yield made
    made.close()


def status(connection: socket.socket) -> int:
    """Of the answer; 0 where the connection was closed without one."""
    found = http.client.HTTPResponse(connection)
    try:
        found.begin()
    except (http.client.RemoteDisconnected, ConnectionError):
        return 0
    found.read()
    return found.status


@pytest.mark.attack
@pytest.mark.parametrize("first", [b"", HEAD + b"{}"])
def test_a_head_without_end_is_refused_wherever_it_begins(served: ServedApp, first: bytes) -> None:
    """Connections send headers without end: they are refused, as the first of a connection and
    behind a request, and other requests are answered meanwhile."""
    with ExitStack() as opened:
        for _ in range(LIMIT - 2):
            bomb = opened.enter_context(connect(served, first + HEAD[:-2]))
            assert not first or status(bomb) == 200
            with suppress(ConnectionError):  # the server closes the connection in the middle
                bomb.sendall(b"X: y\r\n" * MAX_HEAD_BYTES)
            with connect(served, HEAD + b"{}") as connection:
                assert status(connection) == 200
            with suppress(ConnectionError):
                assert bomb.recv(12) in {b"HTTP/1.1 400", b""}
