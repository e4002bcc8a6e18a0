"""Connections without a request do not keep deliveries out of a running server."""

import http.client
import json
import socket
from contextlib import ExitStack

import pytest

from resolver.entrypoints.http_server import allow_open_files
from tests.webhook.serving import Server

PART_OF_A_HEAD = b"POST /webhook HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
PART_OF_A_BODY = (
    b"POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    b"X-Hub-Signature-256: sha256=" + b"0" * 64 + b"\r\n\r\n{"
)


def healthy(server: Server) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        return answer.status == 200 and json.loads(answer.read()) == {"status": "ok"}
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("count", "data"),
    [
        (300, b""),
        (300, PART_OF_A_HEAD),
        (300, PART_OF_A_BODY),
    ],
)
def test_deliveries_are_answered_while_many_connections_send_no_request(
    server: Server, count: int, data: bytes
) -> None:
    allow_open_files(2 * count)
    with ExitStack() as stack:
        for _ in range(count):
            opened = socket.create_connection(("127.0.0.1", server.port), timeout=20)
            stack.enter_context(opened)
            opened.sendall(data)
        assert healthy(server)
        assert server.deliver({"zen": "Keep it logically awesome."}, "ping") == (202, "pong")
