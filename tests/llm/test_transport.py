"""Tests of the HTTP client's limits, on real sockets."""

import gzip
import socket
import threading
import tracemalloc
import zlib
from contextlib import suppress

import httpx
import pytest

from resolver.llm.library import MAX_REPLY_LINES, BoundedClient, read_decoded
from tests.parts.model_endpoint import Answer, ModelEndpoint, drip, raw, redirect, reply

ASK = {"model": "m", "messages": []}


def client(seconds: float = 5.0, max_bytes: int = 1000) -> BoundedClient:
    return BoundedClient(timeout=httpx.Timeout(seconds), max_bytes=max_bytes)


def zipped(size: int) -> Answer:
    return Answer(body=gzip.compress(b" " * size), headers=(("Content-Encoding", "gzip"),))


def test_a_response_up_to_the_limit_arrives_completely(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.script(raw(b"x" * 1000))
    assert client().post(model_endpoint.url, json=ASK).content == b"x" * 1000


def test_a_larger_response_is_an_error(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.script(raw(b"x" * 1001))
    with pytest.raises(httpx.DecodingError, match="larger than 1,000 bytes"):
        client().post(model_endpoint.url, json=ASK)


def test_a_compressed_response_is_decompressed_once(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.script(zipped(900))
    assert client().post(model_endpoint.url, json=ASK).content == b" " * 900


def test_the_limit_applies_to_decompressed_bytes(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.script(zipped(50_000_000))
    with pytest.raises(httpx.DecodingError, match="larger"):
        client().post(model_endpoint.url, json=ASK)


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
@pytest.mark.parametrize("encoding", ["gzip, gzip, gzip", "gzip,gzip", "br", "deflate, gzip"])
def test_an_answer_has_one_known_encoding(model_endpoint: ModelEndpoint, encoding: str) -> None:
    """The model endpoint compresses its reply several times: refused."""
    body = gzip.compress(gzip.compress(gzip.compress(b"{}")))
    model_endpoint.script(Answer(body=body, headers=(("Content-Encoding", encoding),)))
    with pytest.raises(httpx.DecodingError, match="unsupported encoding"):
        client().post(model_endpoint.url, json=ASK)
    assert model_endpoint.requests[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize("encoding", ["deflate", "identity", "x-gzip"])
def test_common_encodings_are_decoded(model_endpoint: ModelEndpoint, encoding: str) -> None:
    encoded = {"deflate": zlib.compress(b"{}"), "identity": b"{}", "x-gzip": gzip.compress(b"{}")}
    answer = Answer(body=encoded[encoding], headers=(("Content-Encoding", encoding),))
    model_endpoint.script(answer)
    assert client().post(model_endpoint.url, json=ASK).content == b"{}"


@pytest.mark.attack
def test_what_is_unpacked_never_exceeds_the_bound() -> None:
    """The model endpoint sends a compression bomb: decoding stops at the limit."""
    bomb = gzip.compress(b" " * 50_000_000)
    response = httpx.Response(
        200,
        headers={"Content-Encoding": "gzip"},
        stream=httpx.ByteStream(bomb),
        request=httpx.Request("POST", "http://model.test"),
    )
    tracemalloc.start()
    with pytest.raises(httpx.DecodingError, match="larger"):
        read_decoded(response, 1000)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


@pytest.mark.attack
def test_blank_lines_of_an_event_stream_are_not_passed_on(model_endpoint: ModelEndpoint) -> None:
    """The model endpoint sends megabytes of blank lines in a stream: they are left out."""
    model_endpoint.script(raw(b"\n" * 2_000_000 + b"data: {}" + b"\r\n" * 100_000 + b"data: 1\n"))
    response = client(max_bytes=5_000_000).post(model_endpoint.url, json=ASK)
    assert list(response.iter_lines()) == ["", "data: {}", "", "data: 1"]


@pytest.mark.attack
def test_the_lines_of_an_event_stream_are_limited(model_endpoint: ModelEndpoint) -> None:
    """The model endpoint sends more events than a reply can have: reading stops at the limit."""
    model_endpoint.script(raw(b": x\n" * (MAX_REPLY_LINES + 1)))
    response = client(max_bytes=5_000_000).post(model_endpoint.url, json=ASK)
    with pytest.raises(httpx.DecodingError, match=r"more than 100,000 lines"):
        for _ in response.iter_lines():
            pass


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
