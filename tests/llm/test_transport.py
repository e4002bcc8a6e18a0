"""Tests of the HTTP client's limits, on real sockets."""

import gzip

import httpx
import pytest

from resolver.llm.library import BoundedClient
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


def test_a_redirect_is_refused_even_when_asked_to_follow(model_endpoint: ModelEndpoint) -> None:
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
    one = client()
    one.post(model_endpoint.url, json=ASK)
    one.post(model_endpoint.url, json=ASK)
    assert "cookie" not in model_endpoint.requests[1].headers


def test_headers_and_status_are_passed_on(model_endpoint: ModelEndpoint) -> None:
    model_endpoint.script(Answer(status=429, body=b"{}", headers=(("Retry-After", "3"),)))
    answer = client().post(model_endpoint.url, json=ASK)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
    assert answer.elapsed.total_seconds() > 0
