"""A TCP port that forwards connections and can cut them at any byte."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Cutter = Callable[[], int | None]
"""For each new connection: after how many bytes, both ways together, it is cut. None is never."""


def never() -> int | None:
    return None


class Forwarder:
    """Listens on loopback. target: a TCP address, or the path of a Unix socket."""

    def __init__(self, target: tuple[str, int] | str, cutter: Cutter = never) -> None:
        self.target = target
        self.cutter = cutter
        self.cuts = 0
        self.connections = 0
        self._port = 0
        self._open: set[_Connection] = set()
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        port: int = self._listening.getsockname()[1]
        return port

    def refuse(self) -> None:
        """Cut what is open, and refuse new connections until `listen`."""
        self._port = self.port
        self._stop_listening()
        self.cut_all()

    def listen(self) -> None:
        """Listen again on the same port after `refuse`."""
        self._listening = socket.create_server(("127.0.0.1", self._port), backlog=64)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _stop_listening(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        self._listening.close()

    def cut_all(self) -> None:
        """Cut what is open now."""
        with self._lock:
            for connection in list(self._open):
                connection.cut()

    def close(self) -> None:
        self._stop_listening()
        self.cut_all()
        with self._lock:
            threads = [t for c in self._open for t in c.threads]
        for thread in threads:
            thread.join(60)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            try:
                far = self._reach()
            except OSError:
                near.close()
                continue
            self.connections += 1
            with self._lock:
                self._open.add(_Connection(self, near, far, self.cutter()))

    def _reach(self) -> socket.socket:
        if isinstance(self.target, tuple):
            return socket.create_connection(self.target)
        far = socket.socket(socket.AF_UNIX)
        far.connect(self.target)
        return far

    def ended(self, connection: "_Connection", was_cut: bool) -> None:
        with self._lock:
            self._open.discard(connection)
            self.cuts += was_cut


class _Connection:
    """Both ends, and a thread for each direction."""

    def __init__(
        self, owner: Forwarder, near: socket.socket, far: socket.socket, left: int | None
    ) -> None:
        self._owner, self._near, self._far, self._left = owner, near, far, left
        self._lock = threading.Lock()
        self._running = 2
        self._was_cut = False
        for connection in (near, far):
            if connection.family != socket.AF_UNIX:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.threads = [
            threading.Thread(target=self._copy, args=ends, daemon=True)
            for ends in ((near, far), (far, near))
        ]
        for thread in self.threads:
            thread.start()

    def cut(self) -> None:
        """End it without a word: what is on its way is lost, as with a pulled cable."""
        self._was_cut = True
        for connection in (self._near, self._far):
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                allowed = self._allowed(len(data))
                target.sendall(data[:allowed])
                if allowed < len(data):
                    self.cut()
                    break
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        with self._lock:
            self._running -= 1
            last = self._running == 0
        if last:
            self._near.close()
            self._far.close()
            self._owner.ended(self, self._was_cut)

    def _allowed(self, wanted: int) -> int:
        with self._lock:
            if self._left is None:
                return wanted
            allowed = min(wanted, self._left)
            self._left -= allowed
            return allowed


@contextmanager
def forwarding(target: tuple[str, int] | str, cutter: Cutter = never) -> Iterator[Forwarder]:
    """A Forwarder that is closed at the end."""
    forwarder = Forwarder(target, cutter)
    try:
        yield forwarder
    finally:
        forwarder.close()
