"""HTTP requests to the sandbox server: its address, the token, and the retry policy."""

import ipaddress
import random
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_delay,
    stop_when_event_set,
)

from resolver.errors import SandboxError, UsageError
from resolver.runtime.remote.protocol import (
    JSON,
    MAX_JSON,
    MIN_TOKEN_CHARACTERS,
    WAIT_SECONDS,
    RemoteFailure,
    RemoteLimits,
)

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

PATIENCE_SECONDS: Final = 60.0
"""Default time for which a broken connection is retried."""

_CONNECT_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = WAIT_SECONDS + 10.0
_FIRST_PAUSE_SECONDS: Final = 0.02
_MAX_PAUSE_SECONDS: Final = 2.0
_TRANSIENT_STATUSES: Final = {408, 502, 503, 504}
"""Status codes of a server, or of a proxy in front of it, that are worth a retry."""


class ConnectionCut(Exception):
    """The connection, or something on the way to the server, failed: the request may be retried."""


class RemoteAccess:
    """Access to one sandbox server. Safe for use by several threads.

    url: address of the server, such as `https://sandboxes.example.org`.
    ca: file with the certificates to trust instead of the system's; None for the system's.
    plain_http: allow `http:` to other machines than this one.
    patience: seconds for which a lost connection is retried before the sandbox is given up.
    Raises UsageError if one of them can't be used.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        ca: str | None = None,
        plain_http: bool = False,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.url = _checked_url(url, plain_http)
        self._patience = patience
        if len(token) < MIN_TOKEN_CHARACTERS or not token.isascii() or not token.isprintable():
            raise UsageError(
                "the token of the remote runtime is no "
                f"{MIN_TOKEN_CHARACTERS} plain characters long",
                "set RESOLVER_REMOTE_TOKEN to the RESOLVER_SANDBOX_TOKEN of the server",
            )
        # No compression: the bodies are read with `iter_raw`, and a compressed body could expand
        # beyond the size limits.
        headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}
        # No redirects, and no proxy or .netrc from the environment: the token must go to this
        # server only.
        self._client = httpx.Client(
            base_url=self.url,
            headers=headers,
            verify=_trusted_certificates(ca) if self.url.startswith("https:") else False,
            timeout=httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=8),
            follow_redirects=False,
            trust_env=False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def limits(self) -> RemoteLimits:
        """Return the limits of the server. Raises SandboxError if it does not answer or refuses."""
        limits = self.persist(
            partial(self.ask, "GET", "/v1/limits", RemoteLimits), threading.Event(), 0
        )
        assert limits is not None, "it has nothing to wait for"
        return limits

    def persist(
        self, function: Callable[[], T], given_up: threading.Event, seconds: float | None = None
    ) -> T:
        """Call `function` and return its result; call it again after a ConnectionCut.

        seconds: how long after the first failure it is retried; None means `patience`.
        given_up: once it is set, pauses end and nothing is retried.
        Raises SandboxError if the time is over.
        """
        try:
            return function()
        except ConnectionCut as cut:
            last = cut
        retry = Retrying(
            retry=retry_if_exception_type(ConnectionCut),
            stop=stop_when_event_set(given_up)
            | stop_after_delay(self._patience if seconds is None else seconds),
            wait=_pause,
            sleep=sleep_using_event(given_up),
            reraise=True,
        )
        try:
            return retry(function)
        except ConnectionCut as cut:
            last = cut
        raise SandboxError(
            f"the sandbox server can't be reached: {last}",
            "check that it runs and RESOLVER_REMOTE, and start the run again",
        ) from last

    def ask(
        self,
        method: str,
        path: str,
        result: type[M],
        *,
        content: bytes | BaseModel = b"",
        params: dict[str, str | int] | None = None,
    ) -> M | None:
        """Send one request without retry. Return None if the server needs more time (status 202).

        In that case the request is to be sent again. Raises ConnectionCut, and SandboxError for an
        answer that is final.
        """
        body = content.model_dump_json().encode() if isinstance(content, BaseModel) else content
        with self.open(method, path, body, params) as response:
            return None if response.status_code == 202 else _parse_body(response, result)

    def delete(self, path: str) -> bool:
        """Delete a resource. Return False if the request must be repeated because it takes longer.

        Raises ConnectionCut and SandboxError.
        """
        with self.open("DELETE", path, b"", None) as response:
            return response.status_code != 202

    @contextmanager
    def open(
        self, method: str, path: str, content: bytes, params: dict[str, str | int] | None
    ) -> Iterator[httpx.Response]:
        """Yield a response whose body is still to be read.

        Raises ConnectionCut and SandboxError.
        """
        if self._client.is_closed:
            raise SandboxError("the remote sandbox was closed", "start the run again")
        request = self._client.build_request(method, path, content=content, params=params)
        with _convert_errors():
            response = self._client.send(request, stream=True)
            try:
                if not response.is_success:
                    raise self._refusal(response)
                yield response
            finally:
                response.close()

    def _refusal(self, response: httpx.Response) -> Exception:
        status = response.status_code
        if status in _TRANSIENT_STATUSES:
            return ConnectionCut(f"{self.url} answered {status}")
        if status == 401:
            return SandboxError(
                f"{self.url} does not accept the token",
                "set RESOLVER_REMOTE_TOKEN to the RESOLVER_SANDBOX_TOKEN of the server",
            )
        try:
            failure = _parse_body(response, RemoteFailure)
        except SandboxError:
            return SandboxError(
                f"{self.url} answered {status}, which is not an answer of a sandbox server",
                "check RESOLVER_REMOTE",
            )
        return SandboxError(failure.what[:1000], failure.next_step[:1000])


def _pause(state: RetryCallState) -> float:
    max_pause = min(_MAX_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(state.attempt_number, 16))
    return random.uniform(max_pause / 2, max_pause)  # noqa: S311 - spreads the clients


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Turn exceptions of the HTTP client into ConnectionCut.

    A certificate that is not trusted becomes a SandboxError, because a retry would be useless.
    """
    try:
        yield
    except httpx.HTTPError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            raise SandboxError(
                f"the sandbox server has a certificate that is not trusted: {cause}",
                "set `ca_file` in RESOLVER_REMOTE to a file with the certificate of its authority",
            ) from error
        raise ConnectionCut(str(error) or type(error).__name__) from error


def _parse_body(response: httpx.Response, result: type[M]) -> M:
    """Parse the JSON body, of limited size, into `result`. Raises SandboxError."""
    body = b""
    for part in response.iter_raw():
        body += part
        if len(body) > MAX_JSON:
            break
    try:
        if response.headers.get("content-type", "").partition(";")[0] != JSON:
            raise ValueError("it is not JSON")
        return result.model_validate_json(body)
    except (ValidationError, ValueError) as error:
        raise SandboxError(
            "the sandbox server returned an answer of an unexpected form",
            "check RESOLVER_REMOTE, and that both ends have the same version",
        ) from error


def _checked_url(url: str, plain_http: bool) -> str:
    """Return the URL without its trailing slash. Raises UsageError."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
        has_extra_parts = parts.username is not None or parts.query or parts.fragment
    except ValueError:
        host, has_extra_parts = "", ""
    if not host or has_extra_parts or parts.scheme not in ("http", "https"):
        raise UsageError(
            "the URL of the remote runtime is not that of a server",
            "set RESOLVER_REMOTE to https://HOST[:PORT]",
        )
    if parts.scheme == "http" and not plain_http and not _is_loopback(host):
        raise UsageError(
            f"the token would go to {host} unencrypted",
            "use https:, or `allow_plain_http: true` in RESOLVER_REMOTE if nobody can listen in",
        )
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _trusted_certificates(ca: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"the certificates in {ca} can't be read: {error}",
            "set `ca_file` in RESOLVER_REMOTE to a file of certificates in PEM form",
        ) from error
