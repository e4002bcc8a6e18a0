"""Tests of the web application on a real socket: its answers, and the deliveries it accepts."""

import hashlib
import hmac
import http.client
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resolver.entrypoints.webhook.metrics import DELIVERIES
from resolver.entrypoints.webhook.webhook import (
    MAX_BODY,
    create_webhook_app,
)
from resolver.errors import ResolverError
from resolver.github.events.payloads import parse_payload
from resolver.storage.database import DatabaseError
from tests.webhook.serving import ServedApp

SECRET = "webhook-canary-2f8e6d4c1b0a9758"


def webhook_signature(secret: str, body: bytes) -> str:
    """Return the value of the `X-Hub-Signature-256` header for `body`."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class App(ServedApp):
    """The application, served; `taken` is what it let through."""

    def __init__(self, seconds: float = 9.0) -> None:
        self.taken: list[tuple[str, str, dict[str, Any]]] = []
        self.pause = 0.0
        self.trouble: ResolverError | None = None
        super().__init__(create_webhook_app(SECRET, self._accept, self._check, seconds))

    def _accept(self, delivery: str, event: str, payload: dict[str, Any]) -> str:
        time.sleep(self.pause)
        self._check()
        self.taken.append((delivery, event, payload))
        return "stored"

    def _check(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def send(self, body: bytes, headers: dict[str, Any], method: str = "POST") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, "/webhook", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def deliver(self, body: bytes, **changes: str | None) -> tuple[int, bytes]:
        """Right in all that `changes` does not name; None leaves a header out."""
        headers: dict[str, str | None] = {
            "X-GitHub-Event": "issues",
            "X-GitHub-Delivery": "d-1",
            "X-Hub-Signature-256": webhook_signature(SECRET, body),
            "Content-Type": "application/json",
        }
        headers |= {name.replace("_", "-"): value for name, value in changes.items()}
        return self.send(body, {n: v for n, v in headers.items() if v is not None})


@pytest.fixture(scope="module")
def app() -> Iterator[App]:
    served = App()
    yield served
    served.close()


@pytest.fixture(autouse=True)
def nothing_taken(app: App) -> None:
    app.taken.clear()


def test_a_signed_delivery_is_let_through(app: App) -> None:
    assert app.deliver(b'{"a": 1}') == (202, b'{"message":"stored"}')
    assert app.taken == [("d-1", "issues", {"a": 1})]


@pytest.mark.attack
@pytest.mark.parametrize(
    "given_signature",
    [
        None,
        "",
        "sha256=",
        "sha256=" + "0" * 64,
        webhook_signature(SECRET, b'{"a": 2}'),
        webhook_signature("another", b'{"a": 1}'),
        webhook_signature("", b'{"a": 1}'),
        webhook_signature(SECRET, b'{"a": 1}').removeprefix("sha256="),
        webhook_signature(SECRET, b'{"a": 1}')[:-1],
        webhook_signature(SECRET, b'{"a": 1}') + "0",
        webhook_signature(SECRET, b'{"a": 1}').upper(),
        "sha1=" + webhook_signature(SECRET, b'{"a": 1}')[7:47],
        "sha256=\xb2" * 9,
    ],
)
def test_a_delivery_without_the_right_signature_is_not_let_in(
    app: App, given_signature: str | None
) -> None:
    """A delivery has no signature, a wrong one, that of another body, or SHA-1 alone: 401."""
    legacy = "sha1=" + hmac.new(SECRET.encode(), b'{"a": 1}', hashlib.sha1).hexdigest()
    status, _ = app.deliver(
        b'{"a": 1}', X_Hub_Signature_256=given_signature, X_Hub_Signature=legacy
    )
    assert status == 401
    assert not app.taken


@pytest.mark.attack
def test_an_unsigned_body_is_not_even_parsed(app: App) -> None:
    """An unsigned body is malformed: it is refused before anything parses it."""
    status, answer = app.deliver(b"[" * 100_000, X_Hub_Signature_256="sha256=" + "0" * 64)
    assert (status, answer) == (401, b'{"detail":"the signature is wrong"}')


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe\xfa",
        b'{"a": "\xc3"}',
        b"payload=%7B%7D",
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b'{"a": ' + b"9" * 5000 + b"}",
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    ],
    ids=lambda body: repr(body[:12]),
)
def test_a_signed_body_that_is_no_object_is_refused(app: App, body: bytes) -> None:
    status, answer = app.deliver(body)
    assert status == 400, answer
    assert not app.taken


@pytest.mark.parametrize(
    "headers",
    [
        {"X_GitHub_Event": None},
        {"X_GitHub_Event": "Issues!"},
        {"X_GitHub_Delivery": None},
        {"X_GitHub_Delivery": "../../etc"},
        {"X_GitHub_Delivery": "a" * 101},
        {"X_GitHub_Delivery": "\xe9"},
    ],
    ids=str,
)
def test_a_missing_or_odd_header_is_refused(app: App, headers: dict[str, str | None]) -> None:
    assert app.deliver(b"{}", **headers)[0] == 400
    assert not app.taken


@pytest.mark.parametrize("size", [MAX_BODY + 1, 30_000_000, 10**15])
def test_a_body_that_says_it_is_too_large_is_refused_unread(app: App, size: int) -> None:
    head = (
        "POST /webhook HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256="
        + "0" * 64
        + f"\r\nContent-Length: {size}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", app.port), timeout=5) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100).startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))


@pytest.mark.attack
def test_a_chunked_body_ends_at_the_limit(app: App) -> None:
    """A body without a length never ends: it is cut off at the limit."""
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b"x" * 1_000_000

    headers = {"X-Hub-Signature-256": "sha256=" + "0" * 64}
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=20)
    try:
        connection.request("POST", "/webhook", chunks(), headers, encode_chunked=True)
        assert connection.getresponse().status == 413
    except ConnectionError:
        pass  # it has answered and closed while we were still sending
    finally:
        connection.close()
    assert sent < 100
    assert app.deliver(b"{}")[0] == 202


@pytest.fixture
def hurried() -> Iterator[App]:
    """The application, with half a second for everything."""
    served = App(seconds=0.5)
    yield served
    served.close()


@pytest.mark.attack
def test_a_slow_body_is_given_up(hurried: App) -> None:
    """A body arrives a byte at a time: the server gives it up."""
    head = (
        "POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
        f"X-Hub-Signature-256: {webhook_signature(SECRET, b'')}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", hurried.port), timeout=5) as connection:
        connection.sendall(head.encode() + b"{")
        assert connection.recv(100).startswith(b"HTTP/1.1 408")


def test_a_delivery_that_takes_too_long_to_store_is_answered_with_an_error(hurried: App) -> None:
    hurried.pause = 1.0
    assert hurried.deliver(b"{}")[0] == 503


HEADERS = st.dictionaries(
    st.sampled_from(
        ["X-GitHub-Event", "X-GitHub-Delivery", "X-Hub-Signature-256", "Content-Type", "X-Other"]
    ),
    st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f\x85\xa0")),
)
FEW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
).map(json.dumps)


@pytest.mark.attack
@FEW
@given(st.binary(max_size=300) | ANY_JSON.map(str.encode), HEADERS)
def test_whatever_comes_signed_is_taken_or_refused_and_never_an_error(
    app: App, body: bytes, headers: dict[str, str]
) -> None:
    """A signed body contains anything, such as half of a surrogate pair: it is accepted or
    refused, never a server error."""
    given_headers = {"X-GitHub-Event": "issues", "X-GitHub-Delivery": "d-2"} | headers
    signed = given_headers | {"X-Hub-Signature-256": webhook_signature(SECRET, body)}
    assert app.send(body, signed)[0] in {202, 400}


@pytest.mark.attack
@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"a\ud800b", "a\ufffdb"),
        (r"\uDC00", "\ufffd"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"a\u0000", "a\ufffd"),
        (r"C:\\ud800 \\u0000", "C:\\ud800 \\u0000"),
    ],
)
def test_characters_that_no_database_stores_are_replaced(written: str, read: str) -> None:
    """A signed body has a lone surrogate or NUL: it is replaced."""
    payload = parse_payload(f'{{"{written}": ["{written}"]}}'.encode())
    assert payload == {read: [read]}


def probe(app: App, path: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=20)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_a_database_in_trouble_is_answered_503_and_logged_without_a_traceback(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    assert probe(app, "/readyz") == (200, {"status": "ok"})
    app.trouble = DatabaseError("the database x can't be used: database or disk is full")
    try:
        status, _ = app.deliver(b'{"a": 1}')
        assert status == 503
        assert probe(app, "/readyz") == (503, {"status": "deliveries can't be stored"})
        assert probe(app, "/healthz") == (200, {"status": "ok"}), "the process is healthy"
    finally:
        app.trouble = None
    result = [record for record in caplog.records if "disk is full" in record.getMessage()]
    assert len(result) == 2
    assert not any(record.exc_info for record in caplog.records)
    assert app.deliver(b'{"a": 1}')[0] == 202


def test_each_delivery_is_counted_by_its_result(app: App) -> None:
    def counts() -> list[float]:
        results = ("stored", "unsigned", "malformed", "failed")
        return [DELIVERIES.labels(result)._value.get() for result in results]

    before = counts()
    app.deliver(b'{"a": 1}')
    app.deliver(b'{"a": 1}', X_Hub_Signature_256="sha256=" + "0" * 64)
    app.deliver(b"[]")
    app.trouble = DatabaseError("the disk is full")
    try:
        app.deliver(b'{"a": 1}')
    finally:
        app.trouble = None
    assert [after - count for after, count in zip(counts(), before, strict=True)] == [1, 1, 1, 1]
