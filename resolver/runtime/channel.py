"""Channels over sockets: a plain one, and one that reads Docker's multiplexed stream.

Docker's framing: 8 bytes of header (stream type, three zeros, length as 32-bit big endian), then
that many bytes. Source: the Engine API's "Attach to a container".
"""

import contextlib
import socket as socketlib
import struct
import threading
from typing import Any, Final, Protocol

from resolver.errors import SandboxError

SEND_SECONDS: Final = 60.0
"""Longest a write may wait for a server that does not read."""

KEPT_STDERR: Final = 4_000
"""Bytes of the server's stderr that are kept."""

_CHUNK: Final = 256 * 1024
_STDOUT, _STDERR = 1, 2


class Socket(Protocol):
    """What is used of a socket: Python's, an SSL one, and an SSH channel all have it."""

    def sendall(self, data: bytes, /) -> object: ...

    def recv(self, count: int, /) -> bytes: ...

    def settimeout(self, seconds: float | None, /) -> None: ...

    def shutdown(self, how: int, /) -> None: ...

    def close(self) -> None: ...


class SocketChannel:
    """A Channel over a connected socket. `receive` may run in another thread than `send`."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._closed = threading.Event()
        # A timeout, not blocking mode: a write to a server that does not read must end, and an
        # SSL socket may then be read and written by two threads.
        socket.settimeout(SEND_SECONDS)

    def send(self, data: bytes) -> None:
        """Write all of it. Raises SandboxError when the other end is gone or does not read."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise SandboxError(
                f"the sandbox's action server can't be written to: {error or type(error).__name__}",
                "see the event log for what ran last, and start the run again",
            ) from error

    def receive(self) -> bytes:
        """Next bytes of stdout, b"" at the end."""
        return self._read(_CHUNK)

    def close(self) -> None:
        """End the connection; a waiting `receive` returns b""."""
        if self._closed.is_set():
            return
        self._closed.set()
        with contextlib.suppress(OSError):  # the other end was quicker
            self._socket.shutdown(socketlib.SHUT_RDWR)
        self._socket.close()

    def last_words(self) -> str:
        """A plain socket has no stderr."""
        return ""

    def _read(self, count: int) -> bytes:
        while not self._closed.is_set():
            try:
                return self._socket.recv(count)
            except TimeoutError:
                continue
            except OSError:
                break
        return b""


class DockerChannel(SocketChannel):
    """A Channel over the hijacked connection of `docker exec` without a terminal.

    connection: what the SDK returned: an SSL or SSH socket, or a reader that holds a plain one.
    """

    def __init__(self, connection: Any) -> None:
        super().__init__(getattr(connection, "_sock", connection))
        self._connection = connection
        self._stream = 0
        self._left = 0
        self._stderr = b""

    def receive(self) -> bytes:
        """Next bytes of stdout, b"" at the end; stderr is kept aside."""
        while True:
            if self._left == 0 and not self._next_frame():
                return b""
            data = self._read(min(self._left, _CHUNK))
            if not data:
                return b""
            self._left -= len(data)
            if self._stream == _STDOUT:
                return data
            if self._stream == _STDERR:
                self._stderr = (self._stderr + data)[-KEPT_STDERR:]

    def last_words(self) -> str:
        """The end of the server's stderr."""
        return self._stderr.decode(errors="replace").strip()

    def close(self) -> None:
        """End the connection; a waiting `receive` returns b""."""
        super().close()
        self._connection.close()

    def _next_frame(self) -> bool:
        while self._left == 0:
            header = b""
            while len(header) < 8:
                part = self._read(8 - len(header))
                if not part:
                    return False
                header += part
            self._stream, self._left = struct.unpack(">BxxxL", header)
        return True
