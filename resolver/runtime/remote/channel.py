"""Client side of a remote sandbox's streams: the wire as a Channel, archives in both directions.

A stream is longer-lived than the HTTP connections that carry it. Both ends count bytes from its
beginning, so that a request can be repeated from the right offset after a failure (protocol.py).
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import httpx

from resolver.errors import SandboxError
from resolver.runtime.remote.access import ConnectionCut, RemoteAccess
from resolver.runtime.remote.protocol import (
    BYTES,
    JSON,
    MAX_JSON,
    MAX_SEGMENT_BYTES,
    ReceivedBytes,
    StreamEnd,
)


class RemoteStream:
    """Both directions of one stream. One thread may send while another one receives."""

    def __init__(self, access: RemoteAccess, path: str) -> None:
        self._access = access
        self._path = path
        self._sent = 0
        self._is_unsure = False
        self._received = 0
        self._response: httpx.Response | None = None
        self._chunks: Iterator[bytes] = iter(())
        self._open = ExitStack()
        self.closed = threading.Event()
        self.has_ended = False
        """True after `receive` has returned the end."""

    def send(self, data: bytes, last: bool = False) -> None:
        """Send all the data. last: True if nothing follows.

        Raises SandboxError if the stream accepts no more data or the server is lost.
        """
        start = self._sent
        while not self._access.persist(partial(self._push, data, start, last), self.closed):
            continue

    def receive(self) -> bytes | StreamEnd:
        """Return the next bytes, or the end. Raises SandboxError if the server is lost."""
        while True:
            received = self._access.persist(self._next, self.closed)
            if received:
                return received

    def close(self) -> None:
        """End a waiting `receive` and all retries."""
        self.closed.set()
        response = self._response
        if response is not None:
            socket_to_server = response.extensions["network_stream"].get_extra_info("socket")
            with contextlib.suppress(OSError):  # the other end has closed it already
                # socket.shutdown, not the method of an SSL socket: that one discards the TLS state,
                # which the reading thread still uses.
                socket.socket.shutdown(socket_to_server, socket.SHUT_RDWR)

    def _push(self, data: bytes, start: int, last: bool) -> bool:
        """Advance by one request.

        Return True if all of `data`, which begins at byte `start`, arrived.
        """
        if self._is_unsure:
            # Part of an interrupted request may have arrived. An empty request asks the server for
            # its offset, and only the rest is sent again.
            received_count = self._post(b"", False)
            self._is_unsure = False
            if received_count > self._sent:
                self._sent = received_count
                return False
        position = self._sent - start
        piece = data[position : position + MAX_SEGMENT_BYTES]
        is_end = position + len(piece) == len(data)
        if not piece and not last:
            return is_end
        self._is_unsure = True
        self._sent = self._post(piece, last and is_end)
        self._is_unsure = False
        return is_end

    def _post(self, piece: bytes, last: bool) -> int:
        """Post `piece` at the current offset; return how many bytes the server has received."""
        params: dict[str, str | int] = {"offset": self._sent}
        if last:
            params["last"] = "true"
        acknowledgement = self._access.ask(
            "POST", self._path, ReceivedBytes, content=piece, params=params
        )
        if (
            acknowledgement is None
            or not self._sent <= acknowledgement.offset <= self._sent + MAX_SEGMENT_BYTES
        ):
            raise SandboxError(
                "the sandbox server has counted other bytes than were sent",
                "start the run again",
            )
        return acknowledgement.offset

    def _next(self) -> bytes | StreamEnd:
        """Return some bytes, or the end; b"" if the server had nothing to send for a while.

        Raises ConnectionCut if the connection broke: the next request continues at the same offset.
        """
        try:
            if self.closed.is_set():
                raise SandboxError("the stream was closed", "start the run again")
            if self._response is None:
                params: dict[str, str | int] = {"offset": self._received}
                self._response = self._open.enter_context(
                    self._access.open("GET", self._path, b"", params)
                )
                self._chunks = self._response.iter_raw()
            kind = self._response.headers.get("content-type", "")
            if kind == JSON:
                return self._end()
            if kind != BYTES:
                raise SandboxError(
                    "the sandbox server returned an answer of an unexpected form",
                    "check RESOLVER_REMOTE",
                )
            data = next(self._chunks, b"")
        except httpx.HTTPError as error:
            self._drop()
            raise ConnectionCut(str(error) or type(error).__name__) from error
        except BaseException:
            self._drop()
            raise
        if not data:
            self._drop()
        self._received += len(data)
        return data

    def _end(self) -> StreamEnd:
        body = b""
        for part in self._chunks:
            body += part
            if len(body) > MAX_JSON:
                break
        self._drop()
        self.has_ended = True
        try:
            return StreamEnd.model_validate_json(body)
        except ValueError as error:
            raise SandboxError("the end of a remote stream is not of its form", "") from error

    def _drop(self) -> None:
        self._response = None
        self._open.close()


class RemoteChannel:
    """The wire of a remote sandbox: a Channel over any number of HTTP connections."""

    def __init__(self, stream: RemoteStream) -> None:
        self._stream = stream
        self._sending = threading.Lock()
        self._collecting = threading.Lock()
        self._collected = bytearray()
        self._exit_details = ""

    def send(self, data: bytes) -> None:
        """Write all the data. Returns when the server has acknowledged it.

        Data of several threads that arrives during a request is sent together in the next one.
        Raises SandboxError.
        """
        with self._collecting:
            self._collected += data
        with self._sending:
            with self._collecting:
                data_to_send, self._collected = bytes(self._collected), bytearray()
            if data_to_send:
                self._stream.send(data_to_send)

    def receive(self) -> bytes:
        """Return the next bytes of stdout, b"" at the end and if the server is lost."""
        if self._stream.closed.is_set():
            return b""
        try:
            received = self._stream.receive()
        except SandboxError as error:
            self._exit_details = error.what
            return b""
        if isinstance(received, bytes):
            return received
        self._exit_details = received.failure.what if received.failure else received.stderr_tail
        return b""

    def close(self) -> None:
        """Close the connection; a waiting `receive` returns b"" then."""
        self._stream.close()

    def exit_details(self) -> str:
        """Return the end of the server's stderr, or why the connection was lost."""
        return self._exit_details
