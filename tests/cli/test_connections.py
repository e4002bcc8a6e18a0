"""The bounds of a connection: how long a head may take, and who makes room."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
import uvicorn

from resolver.entrypoints.http_server import (
    MAX_HEAD_BYTES,
    BoundedConnection,
    ShortRequestConnection,
    listen,
    server_settings,
)

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"
WAITED_FOR = HEAD.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
"""A head after which the server says that it waits for the body."""

LIMIT = 8


class Impatient(BoundedConnection):
    head_seconds = 0.05


async def answer(_scope: Any, receive: Any, send: Any) -> None:
    """Answer 200 once the body is whole."""
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] == "http.request":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Served:
    """The application behind such connections."""

    def __init__(self, protocol: type[BoundedConnection], connections: int = 100) -> None:
        self._listening = listen("127.0.0.1", 0)
        self._server = uvicorn.Server(server_settings(answer, connections, protocol))
        self._thread = threading.Thread(target=self._server.run, args=([self._listening],))
        self._thread.start()

    def connect(self, said: bytes = b"") -> socket.socket:
        made = socket.create_connection(self._listening.getsockname(), timeout=30)
        made.sendall(said)
        return made

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(60)


def status(connection: socket.socket) -> int:
    """Of the answer; 0 where the connection was closed without one."""
    found = http.client.HTTPResponse(connection)
    try:
        found.begin()
    except (http.client.RemoteDisconnected, ConnectionError):
        return 0
    found.read()
    return found.status


@pytest.fixture
def impatient() -> Iterator[Served]:
    served = Served(Impatient)
    yield served
    served.close()


@pytest.mark.parametrize("said", [b"", HEAD[:20]])
def test_a_connection_without_a_whole_head_is_closed(impatient: Served, said: bytes) -> None:
    with impatient.connect(said) as connection:
        assert connection.recv(1) == b""


def test_a_second_head_that_does_not_end_is_bounded_as_well(impatient: Served) -> None:
    with impatient.connect(HEAD + b"{}") as connection:
        assert status(connection) == 200
        connection.sendall(HEAD[:20])
        assert connection.recv(1) == b""


def test_a_body_may_take_longer_than_a_head(impatient: Served) -> None:
    with impatient.connect(HEAD) as slow, impatient.connect() as silent:
        assert silent.recv(1) == b""
        slow.sendall(b"{}")
        assert status(slow) == 200


def test_requests_that_are_sent_at_once_are_answered_in_order(impatient: Served) -> None:
    last = HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with impatient.connect((HEAD + b"{}") * 2 + last + b"{}") as connection:
        answers = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answers.count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.attack
@pytest.mark.parametrize("first", [b"", HEAD + b"{}"])
def test_a_head_without_end_is_refused_wherever_it_begins(first: bytes) -> None:
    """A head has no end: it is refused, as the first of its connection and behind a request."""
    served = Served(BoundedConnection)
    try:
        with served.connect(first + HEAD[:-2]) as connection, suppress(ConnectionError):
            while True:  # until the server closes the connection
                connection.sendall(b"X: y\r\n" * 100)
    finally:
        served.close()


@pytest.mark.attack
def test_heads_without_end_are_refused_while_requests_are_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Connections send headers without end: they are refused, and others are answered."""
    served = Served(ShortRequestConnection, LIMIT)
    answers = []
    with ExitStack() as opened:
        opened.callback(served.close)
        bombs = [opened.enter_context(served.connect(HEAD[:-2])) for _ in range(LIMIT // 2 - 1)]
        for bomb in bombs:
            with suppress(OSError):  # the server closes the connection in the middle
                bomb.sendall(b"X: y\r\n" * MAX_HEAD_BYTES)
            with served.connect(HEAD + b"{}") as connection:
                assert status(connection) == 200
            with suppress(ConnectionError):
                answers.append(bomb.recv(12))
    assert set(answers) <= {b"HTTP/1.1 400", b""}
    assert caplog.text.count("Invalid HTTP request received") == len(bombs)


@pytest.mark.parametrize(
    ("protocol", "said", "held", "expected"),
    [
        (BoundedConnection, b"", 3 * LIMIT, 200),
        (BoundedConnection, WAITED_FOR, LIMIT - 1, 503),
        (ShortRequestConnection, WAITED_FOR, LIMIT - 1, 200),
    ],
)
def test_connections_without_a_request_make_room_and_bodies_where_requests_are_short(
    protocol: type[BoundedConnection], said: bytes, held: int, expected: int
) -> None:
    served = Served(protocol, LIMIT)
    try:
        others = []
        for _ in range(held):
            others.append(served.connect(said))
            assert not said or others[-1].recv(100).startswith(b"HTTP/1.1 100")
        with served.connect(HEAD + b"{}") as connection:
            assert status(connection) == expected
        for other in others:
            other.close()
    finally:
        served.close()
