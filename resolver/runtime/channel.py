"""Channels over sockets: a plain one, and one that reads Docker's multiplexed stream.

Without a terminal, an attach or exec connection carries stdout and stderr in one stream. Each frame
has a header of 8 bytes (stream type, three zero bytes, length as 32-bit big endian), followed by
that many bytes. Source: "Stream format" of the operation "Attach to a container" at
https://docs.docker.com/reference/api/engine/.
"""

import contextlib
import socket as socketlib
import struct
import threading
from typing import Any, Final, Protocol

from resolver.errors import SandboxError

SEND_SECONDS: Final = 60.0
"""Longest time that a write waits for a server that does not read."""

KEPT_STDERR_BYTES: Final = 4_000
"""Number of bytes of the server's stderr that are kept."""

_CHUNK_BYTES: Final = 256 * 1024
_STDOUT, _STDERR = 1, 2


class Socket(Protocol):
    """The methods that are used of a socket.

    Python's sockets, SSL sockets and SSH channels have them.
    """

    def sendall(self, data: bytes, /) -> object: ...

    def recv(self, count: int, /) -> bytes: ...

    def settimeout(self, seconds: float | None, /) -> None: ...

    def shutdown(self, how: int, /) -> None: ...

    def close(self) -> None: ...


class SocketChannel:
    """A Channel over a connected socket. `receive` and `send` may run in different threads."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._closed = threading.Event()
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._closing = threading.Lock()
        # A timeout instead of blocking mode: a write to a server that does not read must end, and
        # two threads may then read and write an SSL socket at the same time.
        socket.settimeout(SEND_SECONDS)

    def send(self, data: bytes) -> None:
        """Write all the data. Raises SandboxError if the other end is gone or does not read."""
        try:
            with self._writing:
                self._socket.sendall(data)
        except OSError as error:
            raise SandboxError(
                f"the sandbox's action server can't be written to: {error or type(error).__name__}",
                "see the event log for what ran last, and start the run again",
            ) from error

    def receive(self) -> bytes:
        """Return the next bytes of stdout, b"" at the end."""
        return self._read(_CHUNK_BYTES)

    def close(self) -> None:
        """Close the connection; a waiting `receive` returns b"" then."""
        with self._closing:  # the reader closes it too, when the other end is gone
            if self._closed.is_set():
                return
            self._closed.set()
            with contextlib.suppress(OSError):  # the other end has closed it already
                self._socket.shutdown(socketlib.SHUT_RDWR)
            # Whoever waits for the socket is awake now, but may not have looked yet. If the
            # descriptor were closed and opened again before, they would go on waiting, for another
            # connection.
            with self._reading, self._writing:
                self._release()

    def _release(self) -> None:
        self._socket.close()

    def exit_details(self) -> str:
        """Return "": a plain socket has no stderr."""
        return ""

    def _read(self, count: int) -> bytes:
        while not self._closed.is_set():
            try:
                with self._reading:
                    return self._socket.recv(count)
            except TimeoutError:
                continue
            except OSError:
                break
        return b""


class DockerChannel(SocketChannel):
    """A Channel over the hijacked HTTP connection of `docker exec` without a terminal.

    connection: the return value of the SDK: an SSL or SSH socket, or a reader that holds a plain
        socket.
    """

    def __init__(self, connection: Any) -> None:
        super().__init__(getattr(connection, "_sock", connection))
        self._connection = connection
        self._stream = 0
        self._bytes_left = 0
        self._stderr = b""

    def receive(self) -> bytes:
        """Return the next bytes of stdout, b"" at the end.

        The end of stderr is kept for `exit_details`.
        """
        while True:
            if self._bytes_left == 0 and not self._next_frame():
                return b""
            data = self._read(min(self._bytes_left, _CHUNK_BYTES))
            if not data:
                return b""
            self._bytes_left -= len(data)
            if self._stream == _STDOUT:
                return data
            if self._stream == _STDERR:
                self._stderr = (self._stderr + data)[-KEPT_STDERR_BYTES:]

    def exit_details(self) -> str:
        """Return the end of the server's stderr."""
        return self._stderr.decode(errors="replace").strip()

    def _release(self) -> None:
        super()._release()
        # With TLS, the response has a reader that keeps the socket open.
        getattr(self._connection, "_response", self._connection).close()

    def _next_frame(self) -> bool:
        """Read headers up to a frame that isn't empty. Return False at the end of the stream."""
        while self._bytes_left == 0:
            header = b""
            while len(header) < 8:
                part = self._read(8 - len(header))
                if not part:
                    return False
                header += part
            self._stream, self._bytes_left = struct.unpack(">BxxxL", header)
        return True
