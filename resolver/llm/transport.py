"""The HTTP client for all model calls.

It follows no redirects, keeps no cookies, and limits the size and the duration of a response.
"""

import time
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

MAX_REPLY_BYTES = 10_000_000
REDIRECTED = "it redirects, which is not followed,"

# Headers that no longer apply, because httpx returns the body decoded.
_OF_THE_TRANSFER = {"content-encoding", "content-length", "transfer-encoding"}


class BoundedClient(httpx.Client):
    """An httpx client that reads each response completely, within limits.

    A redirect becomes an error response (400), which the code of every provider in litellm reports
    as an error. Following it would send the conversation, and with some providers the key, to a
    host that nobody configured. The read timeout of a request limits the whole response, not only
    the wait for each chunk.

    answered: headers of the last response; litellm loses them for some errors.
    """

    def __init__(self, timeout: httpx.Timeout, max_bytes: int = MAX_REPLY_BYTES) -> None:
        """Create a client without kept-alive connections.

        timeout: for requests without a timeout of their own.
        max_bytes: maximum size of a body, after decompression.
        """
        super().__init__(
            timeout=timeout,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            # Don't keep connections alive. Commands run between two calls, and endpoints close
            # idle connections: reuse saves a handshake, but a stale connection costs a failed
            # attempt.
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        self._max_bytes = max_bytes
        self.answered: dict[str, str] = {}

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Return the complete response.

        Raises httpx.ReadTimeout if it takes too long, and httpx.DecodingError if it is too large.
        """
        seconds = request.extensions.get("timeout", {}).get("read")
        deadline = None if seconds is None else time.monotonic() + seconds
        self.answered = {}
        answer = super().send(request, **{**options, "stream": True, "follow_redirects": False})
        self.answered = dict(answer.headers)
        try:
            body = self._read(answer, deadline)
        finally:
            answer.close()
        if answer.has_redirect_location:
            return _refusal(request, answer)
        headers = [
            (name, value)
            for name, value in answer.headers.multi_items()
            if name not in _OF_THE_TRANSFER
        ]
        whole = httpx.Response(answer.status_code, headers=headers, content=body, request=request)
        whole.elapsed = answer.elapsed
        return whole

    def _read(self, answer: httpx.Response, deadline: float | None) -> bytes:
        body = bytearray()
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > self._max_bytes:
                raise httpx.DecodingError(
                    f"the reply is larger than {self._max_bytes:,} bytes", request=answer.request
                )
            if deadline is not None and time.monotonic() > deadline:
                raise httpx.ReadTimeout("the reply took too long", request=answer.request)
        return bytes(body)


def _refusal(request: httpx.Request, redirect: httpx.Response) -> httpx.Response:
    target = redirect.headers["location"]
    message = f"{REDIRECTED} to {target} (status {redirect.status_code})"
    return httpx.Response(400, json={"error": {"message": message}}, request=request)
