"""The HTTP client that every model call goes through. It never follows a redirect, keeps no
cookies, and bounds a reply in bytes and in time.
"""

import time
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

MAX_REPLY_BYTES = 10_000_000
REDIRECTED = "it redirects, which is not followed,"

# httpx has undone these when it hands out the body.
_OF_THE_TRANSFER = {"content-encoding", "content-length", "transfer-encoding"}


class BoundedClient(httpx.Client):
    """A client for one question and one whole answer.

    A redirect is answered with a refusal (400), which every provider's code in litellm reports
    as one: following it would carry the conversation, and with some providers the key, to a
    host that nobody configured. The read timeout of a request bounds the whole answer, not only
    each wait for a next piece of it.

    answered: headers of the last answer; litellm loses those of some errors.
    """

    def __init__(self, timeout: httpx.Timeout, max_bytes: int = MAX_REPLY_BYTES) -> None:
        """timeout: for requests that bring none. max_bytes: size of the largest body that is
        read, after decompression."""
        super().__init__(
            timeout=timeout,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            # Commands run between two calls, and the endpoint closes what idles: a kept
            # connection saves one handshake, and a stale one costs a failed attempt.
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        self._max_bytes = max_bytes
        self.answered: dict[str, str] = {}

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """The whole response. Raises httpx.ReadTimeout when it takes too long, and
        httpx.DecodingError when it is too large."""
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
