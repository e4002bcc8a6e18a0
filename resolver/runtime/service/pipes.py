"""The two directions of a stream, between the event loop and a thread that talks to a machine.

Both count bytes from the stream's begin, hold a bounded number of them, and make the faster end
wait.
"""

import asyncio
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Final

from resolver.errors import SandboxError
from resolver.runtime.remote.protocol import SEGMENT, StreamEnd

HELD: Final = 4 * SEGMENT
"""Bytes that wait in one direction before the faster end has to."""

_CHUNK: Final = 256 * 1024


class OffsetError(Exception):
    """Bytes of the stream that were let go already, or that were never there."""


class Incoming:
    """From the client: what came twice is left out. Iterated by one thread; the rest is the loop's.

    The thread's iteration ends at the stream's last byte, and raises SandboxError at `close`.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._room = asyncio.Event()
        self._waiting = 0
        self._finished = False
        self._closed = False
        self.received = 0

    async def accept(self, offset: int, data: bytes) -> None:
        """Take what is new of `data`, which begins at byte `offset`; waits for room.

        Raises OffsetError for a gap, and when the stream takes no more.
        """
        while True:
            if offset > self.received:
                raise OffsetError(f"byte {self.received} is missing")
            new = data[self.received - offset :]
            if not new:
                return
            if self._finished or self._closed:
                raise OffsetError("the stream has ended")
            if self._waiting < HELD:
                break
            self._room.clear()
            await self._room.wait()
        self.received += len(new)
        self._waiting += len(new)
        self._queue.put(new)

    def finish(self, offset: int) -> None:
        """Byte `offset` would be the first after the last one. Raises OffsetError for a gap."""
        if offset != self.received:
            raise OffsetError(f"the stream has {self.received} bytes")
        if not self._finished:
            self._finished = True
            self._queue.put(None)

    def close(self) -> None:
        """Take nothing any more, and let nobody wait."""
        self._closed = True
        self._queue.put(None)
        self._room.set()

    def __iter__(self) -> Iterator[bytes]:
        while (data := self._queue.get()) is not None:
            self._loop.call_soon_threadsafe(self._taken, len(data))
            yield data
        if self._closed:
            raise SandboxError("the stream was closed before its end", "start the run again")

    def _taken(self, count: int) -> None:
        self._waiting -= count
        self._room.set()


class Outgoing:
    """To the client: kept until it says that it has them. Written by threads, read by the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived = asyncio.Event()
        self._changed = threading.Condition()
        self._kept = bytearray()
        self._base = 0
        self._end: StreamEnd | None = None

    def write(self, data: bytes) -> None:
        """Add to the stream; waits for room. Raises SandboxError after `end`."""
        with self._changed:
            self._changed.wait_for(lambda: self._end is not None or len(self._kept) < HELD)
            if self._end is not None:
                raise SandboxError("the stream was closed before its end", "start the run again")
            self._kept += data
        self._loop.call_soon_threadsafe(self._arrived.set)

    def end(self, end: StreamEnd) -> None:
        """Nothing more comes. The first end stands. From a thread."""
        with self._changed:
            self._end = self._end or end
            self._changed.notify_all()
        self._loop.call_soon_threadsafe(self._arrived.set)

    def release(self, offset: int) -> None:
        """The client has everything before byte `offset`. Raises OffsetError for a wrong one."""
        with self._changed:
            if not self._base <= offset <= self._base + len(self._kept):
                raise OffsetError(f"bytes {self._base} to {self._base + len(self._kept)} are kept")
            del self._kept[: offset - self._base]
            self._base = offset
            self._changed.notify_all()

    def end_at(self, offset: int) -> StreamEnd | None:
        """The end, where byte `offset` would be the first after the last one."""
        with self._changed:
            return self._end if offset == self._base + len(self._kept) else None

    async def read(self, offset: int, seconds: float) -> bytes:
        """Bytes from `offset` on; none at the end, or when nothing came in time.

        None as well when another reader has let go of them: that one is the client, this is a
        connection that it has given up.
        """
        try:
            async with asyncio.timeout(seconds):
                while True:
                    self._arrived.clear()
                    with self._changed:
                        start = offset - self._base
                        if start < 0:
                            return b""
                        if start < len(self._kept):
                            return bytes(self._kept[start : start + _CHUNK])
                        if self._end is not None:
                            return b""
                    await self._arrived.wait()
        except TimeoutError:
            return b""
