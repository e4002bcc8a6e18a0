"""A TCP port that forwards connections and can cut them."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NO_LINGER = struct.pack("ii", 1, 0)


class Forwarder:
    """Listens on loopback. target: a TCP address."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.port = 0
        self._target = target
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.listen()

    def listen(self) -> None:
        """Listen, after `refuse` on the same port as before."""
        self._listening = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self.port = self._listening.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, args=[self._listening], daemon=True)
        self._accepting.start()

    def refuse(self) -> None:
        """Refuse new connections until `listen`, and cut what is open without a word: what is on
        its way is lost, as with a pulled cable."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join(60)
        self._listening.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                near, _ = listening.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._forward, args=[near], daemon=True)
            self._threads.append(thread)
            thread.start()

    def _forward(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError), socket.create_connection(self._target) as far:
            self._open += [near, far]
            back = threading.Thread(target=_copy, args=[far, near], daemon=True)
            back.start()
            _copy(near, far)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def forwarding(target: tuple[str, int]) -> Iterator[Forwarder]:
    """A Forwarder that is closed at the end."""
    forwarder = Forwarder(target)
    try:
        yield forwarder
    finally:
        forwarder.refuse()
