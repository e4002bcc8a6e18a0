"""Tests of the HTTP client's limits, on real sockets."""

import gzip
import socket
import threading
from contextlib import suppress

import httpx
import pytest

from resolver.llm.library import MAX_REPLY_LINES, BoundedClient
from tests.parts.model_endpoint import Answer, ModelEndpoint, drip, raw, redirect, reply

ASK = {"model": "m", "messages": []}


def client(seconds: float = 5.0, max_bytes: int = 1000) -> BoundedClient:
    return BoundedClient(timeout=httpx.Timeout(seconds), max_bytes=max_bytes)


def test_a_response_up_to_the_limit_arrives_completely(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.script(raw(b"x" * 1000))
    assert client().post(model_endpoint.url, json=ASK).content == b"x" * 1000


def test_the_timeout_applies_to_the_whole_response(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.script(drip(0.02, reply("x" * 500)))
    with pytest.raises(httpx.ReadTimeout):
        client(0.15).post(model_endpoint.url, json=ASK)


class EndlessHead:
    """A server that sends lines of a response head until the client hangs up."""

    def __init__(self, line: bytes) -> None:
        self._line = line
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        self.hung_up = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with self._listener, self._listener.accept()[0] as connection:
            connection.recv(65536)
            if not self._line.startswith(b"HTTP"):
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
            with suppress(OSError):
                # Each wait for a line is far shorter than the client's read timeout.
                while not self.hung_up.wait(0.02):
                    connection.sendall(self._line)
            self.hung_up.set()


@pytest.mark.attack
@pytest.mark.parametrize("line", [b"X-Line: 1\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n"])
def test_the_timeout_bounds_the_head_of_an_answer(line: bytes) -> None:
    """The model endpoint sends its response head slowly: the deadline ends it."""
    server = EndlessHead(line)
    with pytest.raises(httpx.ReadTimeout, match="took too long"):
        client(0.3).post(server.url, json=ASK)
    assert server.hung_up.wait(60)


@pytest.mark.attack
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (raw(b"x" * 5_000_001), "larger than 5,000,000 bytes"),
        (raw(b": x\n" * (MAX_REPLY_LINES + 1)), "more than 200,000 lines"),
        (
            Answer(body=gzip.compress(b" " * 6_000_000), headers=(("Content-Encoding", "gzip"),)),
            "unsupported encoding gzip",
        ),
    ],
    ids=["bytes", "lines", "compression bomb"],
)
def test_a_response_beyond_its_bounds_is_an_error(
    model_endpoint: ModelEndpoint, answer: Answer, message: str
) -> None:
    """The model endpoint sends a huge, endless or compressed reply: reading stops at the limit."""
    model_endpoint.script(answer)
    with pytest.raises(httpx.DecodingError, match=message):
        client(max_bytes=5_000_000).post(model_endpoint.url, json=ASK)
    assert model_endpoint.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.attack
def test_a_redirect_is_refused_even_when_asked_to_follow(model_endpoint: ModelEndpoint) -> None:
    """The model endpoint redirects to another host: refused, so the key is not sent there."""
    with ModelEndpoint() as other:
        model_endpoint.script(redirect(other.url))
        answer = client().post(model_endpoint.url, json=ASK, follow_redirects=True)
        assert answer.status_code == 400
        assert other.url in answer.json()["error"]["message"]
        assert other.requests == []


def test_cookies_are_not_stored(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.script(
        Answer(body=b"{}", headers=(("Set-Cookie", "run=1; Path=/"),)), raw(b"{}")
    )
    http = client()
    http.post(model_endpoint.url, json=ASK)
    http.post(model_endpoint.url, json=ASK)
    assert "cookie" not in model_endpoint.requests[1].headers
