"""A stream of a sandbox on the server: a thread that carries bytes between machine and client.

`wire`, `put` and `get` return the functions that the thread runs. Between the thread and the event
loop are two pipes, one for each direction. Both count bytes from the beginning of the stream and
hold a limited number of them; the faster end has to wait. Repeated requests are harmless because
every request names its offset.
"""

import asyncio
import contextlib
import logging
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import Final

from resolver.errors import SandboxError
from resolver.runtime.base import Channel, Machine
from resolver.runtime.remote.protocol import MAX_SEGMENT_BYTES, RemoteFailure, StreamEnd

MAX_HELD_BYTES: Final = 4 * MAX_SEGMENT_BYTES
"""Number of bytes that may wait in one direction before the faster end has to."""

_CHUNK_BYTES: Final = 256 * 1024


class OffsetError(Exception):
    """Raised for bytes of the stream that were released already or have never existed."""


class Incoming:
    """Bytes from the client, without those that arrive twice.

    One thread iterates over it; the methods are for the event loop. The iteration ends after the
    stream's last byte and raises SandboxError after `close`.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._has_room = asyncio.Event()
        self._waiting_bytes = 0
        self._finished = False
        self._closed = False
        self.received = 0

    async def accept(self, offset: int, data: bytes) -> None:
        """Add the new part of `data`, which begins at byte `offset`. Waits until there is room.

        Raises OffsetError for a gap, and if the stream accepts no more data.
        """
        while True:
            if offset > self.received:
                raise OffsetError(f"byte {self.received} is missing")
            new = data[self.received - offset :]
            if not new:
                return
            if self._finished or self._closed:
                raise OffsetError("the stream has ended")
            if self._waiting_bytes < MAX_HELD_BYTES:
                break
            self._has_room.clear()
            await self._has_room.wait()
        self.received += len(new)
        self._waiting_bytes += len(new)
        self._queue.put(new)

    def finish(self, offset: int) -> None:
        """Mark the end: `offset` is the number of bytes of the stream.

        Raises OffsetError for a gap.
        """
        if offset != self.received:
            raise OffsetError(f"the stream has {self.received} bytes")
        if not self._finished:
            self._finished = True
            self._queue.put(None)

    def close(self) -> None:
        """Accept no more data and wake everybody who waits."""
        self._closed = True
        self._queue.put(None)
        self._has_room.set()

    def __iter__(self) -> Iterator[bytes]:
        while (data := self._queue.get()) is not None:
            self._loop.call_soon_threadsafe(self._release_room, len(data))
            yield data
        if self._closed:
            raise SandboxError("the stream was closed before its end", "start the run again")

    def _release_room(self, count: int) -> None:
        self._waiting_bytes -= count
        self._has_room.set()


class Outgoing:
    """Bytes to the client, kept until they are acknowledged.

    Threads write, the event loop reads.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived = asyncio.Event()
        self._changed = threading.Condition()
        self._buffer = bytearray()
        self._buffer_start = 0
        self._end: StreamEnd | None = None

    def write(self, data: bytes) -> None:
        """Add to the stream; waits for room. Raises SandboxError after `end`."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._end is not None or len(self._buffer) < MAX_HELD_BYTES
            )
            if self._end is not None:
                raise SandboxError("the stream was closed before its end", "start the run again")
            self._buffer += data
        self._loop.call_soon_threadsafe(self._arrived.set)

    def end(self, end: StreamEnd) -> None:
        """Mark the end of the stream. Only the first call counts. May be called from any thread."""
        with self._changed:
            self._end = self._end or end
            self._changed.notify_all()
        self._loop.call_soon_threadsafe(self._arrived.set)

    def release(self, offset: int) -> None:
        """Release all bytes before `offset`, which the client has.

        Raises OffsetError for a wrong one.
        """
        with self._changed:
            if not self._buffer_start <= offset <= self._buffer_start + len(self._buffer):
                raise OffsetError(
                    f"bytes {self._buffer_start} to "
                    f"{self._buffer_start + len(self._buffer)} are kept"
                )
            del self._buffer[: offset - self._buffer_start]
            self._buffer_start = offset
            self._changed.notify_all()

    def end_at(self, offset: int) -> StreamEnd | None:
        """Return the end if `offset` is the number of bytes of the ended stream, otherwise None."""
        with self._changed:
            return self._end if offset == self._buffer_start + len(self._buffer) else None

    async def read(self, offset: int, seconds: float) -> bytes:
        """Return bytes from `offset` on; b"" at the end, or if nothing arrives in time.

        Also returns b"" if bytes after `offset` were released for another reader. That reader is
        the client's present connection, and this one was given up.
        """
        try:
            async with asyncio.timeout(seconds):
                while True:
                    self._arrived.clear()
                    with self._changed:
                        start = offset - self._buffer_start
                        if start < 0:
                            return b""
                        if start < len(self._buffer):
                            return bytes(self._buffer[start : start + _CHUNK_BYTES])
                        if self._end is not None:
                            return b""
                    await self._arrived.wait()
        except TimeoutError:
            return b""


logger = logging.getLogger("resolver.sandboxes")

Carry = Callable[[Iterable[bytes], Callable[[bytes], None]], str]
"""Arguments: the bytes from the client, and a function that writes to the client. Returns the end
of the action server's stderr, or ""."""

_BROKEN: Final = StreamEnd(
    failure=RemoteFailure(
        what="the sandbox server failed", next_step="its log says more; start the run again"
    )
)


class Stream:
    """A stream that starts when it is constructed.

    stop: called by `close` to free a waiting thread.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, carry: Carry, stop: Callable[[], None]
    ) -> None:
        self.incoming = Incoming(loop)
        self.outgoing = Outgoing(loop)
        self._loop = loop
        self._carry = carry
        self._stop = stop
        threading.Thread(target=self._run, name="sandbox-stream", daemon=True).start()

    def close(self, reason: RemoteFailure) -> None:
        """End both directions and report the reason to the client. May be called more than once."""
        self.outgoing.end(StreamEnd(failure=reason))
        self.incoming.close()
        self._stop()

    def _run(self) -> None:
        end = _BROKEN
        try:
            end = StreamEnd(stderr_tail=self._carry(self.incoming, self.outgoing.write))
        except SandboxError as error:
            end = StreamEnd(failure=RemoteFailure(what=error.what, next_step=error.next_step))
        except (tarfile.TarError, OSError, ValueError, EOFError) as error:
            reason = f"the archive could not be unpacked: {error}"
            end = StreamEnd(failure=RemoteFailure(what=reason, next_step="start the run again"))
        finally:
            # The loop may be closed already if the server ends in the middle of this.
            with contextlib.suppress(RuntimeError):
                self.outgoing.end(end)
                self._loop.call_soon_threadsafe(self.incoming.close)


def wire(channel: Channel) -> Carry:
    """Return a function that carries the action server's stdin and stdout."""

    def carry(incoming: Iterable[bytes], write: Callable[[bytes], None]) -> str:
        errors: list[SandboxError] = []

        def send() -> None:
            try:
                for data in incoming:
                    channel.send(data)
            except SandboxError as error:
                errors.append(error)
                channel.close()

        threading.Thread(target=send, name="sandbox-wire", daemon=True).start()
        try:
            while data := channel.receive():
                write(data)
            details = channel.exit_details()
        finally:
            channel.close()
        if errors:
            raise errors[0]
        return details

    return carry


def receive_archive(machine: Machine, path: str) -> Carry:
    """Return a function that carries an archive into the sandbox."""

    def carry(incoming: Iterable[bytes], write: Callable[[bytes], None]) -> str:  # noqa: ARG001
        machine.put_archive(path, iter(incoming))
        return ""

    return carry


def get(machine: Machine, path: str) -> Carry:
    """Return a function that carries an archive out of the sandbox."""

    def carry(incoming: Iterable[bytes], write: Callable[[bytes], None]) -> str:  # noqa: ARG001
        for chunk in machine.get_archive(path):
            write(chunk)
        return ""

    return carry
