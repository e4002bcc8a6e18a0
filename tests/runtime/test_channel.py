"""Tests of channels that are closed while others wait for them."""

import threading
import time

from resolver.runtime.channel import SocketChannel


class SlowSocket:
    """A socket whose reader is awake only a moment after the shutdown."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.is_read, self._is_shut = threading.Event(), threading.Event()

    def settimeout(self, seconds: float | None, /) -> None:
        del seconds

    def sendall(self, data: bytes, /) -> None:
        del data

    def recv(self, count: int, /) -> bytes:
        del count
        self.is_read.set()
        self._is_shut.wait()
        time.sleep(0.05)
        self.done.append("read")
        return b""

    def shutdown(self, how: int, /) -> None:
        del how
        self._is_shut.set()

    def close(self) -> None:
        self.done.append("closed")


def test_a_socket_is_closed_after_its_reader_has_left() -> None:
    """Another connection may get the descriptor at once, and the reader would wait for that."""
    socket = SlowSocket()
    channel = SocketChannel(socket)
    reader = threading.Thread(target=channel.receive)
    reader.start()
    socket.is_read.wait()
    channel.close()
    reader.join()
    assert socket.done == ["read", "closed"]
