"""Tests of channels that are closed while others wait for them."""

import threading
import time

from resolver.runtime.channel import DockerChannel, SocketChannel


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


class SlowConnection:
    """A connection to the engine, of which closing it a second time is an error."""

    def __init__(self) -> None:
        self._sock = SlowSocket()

    def close(self) -> None:
        self._sock.done.append("connection closed")


def test_a_connection_is_closed_once_whoever_closes_it() -> None:
    """The reader closes it when the server has ended, while the run closes the sandbox."""
    connection = SlowConnection()
    channel, socket = DockerChannel(connection), connection._sock

    def read_to_the_end() -> None:
        channel.receive()
        channel.close()

    reader = threading.Thread(target=read_to_the_end)
    reader.start()
    socket.is_read.wait()
    channel.close()
    reader.join()
    assert socket.done == ["read", "closed", "connection closed"]
