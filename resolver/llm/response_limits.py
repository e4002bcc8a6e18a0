"""Limits the time and the decoded size of an HTTP response, from the first byte of its head on.

A timeout of httpx limits the wait for each read only. An endpoint that sends one header line, or
one `103 Early Hints`, per second would keep a call waiting without end.
"""

import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
"""Tells zlib to recognize both formats: https://docs.python.org/3/library/zlib.html#zlib.decompress"""

ACCEPTED_ENCODING = "gzip"
"""The encoding that requests ask for."""


class ResponseDeadline:
    """Shuts the connection of one request down when its time is over.

    The connection is learned from httpcore's trace of the request:
    https://www.encode.io/httpcore/extensions/#trace
    """

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self.has_expired = False

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Take the connection from an event of httpcore."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            connection = info["return_value"].get_extra_info("socket")
            with self._lock:
                self._sockets.append(connection)
                if self.has_expired:
                    _shut_down(connection)

    def _expire(self) -> None:
        with self._lock:
            self.has_expired = True
            for connection in self._sockets:
                _shut_down(connection)

    @contextmanager
    def running(self, request: httpx.Request) -> Iterator[None]:
        """Limit the time of the block. Raises httpx.ReadTimeout if it is over."""
        request.extensions = {**request.extensions, "trace": self.trace}
        self._timer.start()
        try:
            yield
        except httpx.TransportError as error:
            if self.has_expired:
                raise httpx.ReadTimeout("the reply took too long", request=request) from error
            raise
        finally:
            self._timer.cancel()
        if self.has_expired:  # the end of the connection can look like the end of the reply
            raise httpx.ReadTimeout("the reply took too long", request=request)


def _shut_down(connection: socket.socket) -> None:
    # The method of the plain socket: that of a TLS socket is not safe while another thread reads.
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def read_decoded(response: httpx.Response, max_bytes: int) -> bytes:
    """Return the decoded body of a response. Decoding stops at `max_bytes`.

    Raises httpx.DecodingError if the body is larger, or has more than one encoding or another than
    gzip or deflate.
    """
    encodings = [
        name
        for part in response.headers.get("content-encoding", "").split(",")
        if (name := part.strip().lower()) not in {"", "identity"}
    ]
    if len(encodings) > 1 or not {"gzip", "x-gzip", "deflate"}.issuperset(encodings):
        names = ", ".join(encodings)[:100]
        raise _decoding_error(response, f"the reply has the unsupported encoding {names}")
    decoder = zlib.decompressobj(_GZIP_OR_ZLIB) if encodings else None
    body = bytearray()
    for chunk in response.iter_raw():
        # One byte more than allowed, to recognize a body that is too large.
        remaining = max_bytes + 1 - len(body)
        try:
            body += chunk[:remaining] if decoder is None else decoder.decompress(chunk, remaining)
        except zlib.error as error:
            raise _decoding_error(response, f"the reply can't be decompressed: {error}") from error
        if len(body) > max_bytes:
            raise _decoding_error(response, f"the reply is larger than {max_bytes:,} bytes")
    return bytes(body)


def _decoding_error(response: httpx.Response, message: str) -> httpx.DecodingError:
    return httpx.DecodingError(message, request=response.request)
