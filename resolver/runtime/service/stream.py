"""A stream of a sandbox on the server: a thread that carries bytes between machine and client.

`wire`, `put` and `get` return the functions that the thread runs.
"""

import asyncio
import contextlib
import logging
import tarfile
import threading
from collections.abc import Callable, Iterable
from typing import Final

from resolver.errors import SandboxError
from resolver.runtime.base import Channel, Machine
from resolver.runtime.remote.protocol import RemoteFailure, StreamEnd
from resolver.runtime.service.pipes import Incoming, Outgoing

logger = logging.getLogger("resolver.sandboxes")

Carry = Callable[[Iterable[bytes], Callable[[bytes], None]], str]
"""Arguments: the bytes from the client, and a function that writes to the client. Returns the end
of the action server's stderr, or ""."""

_BROKEN: Final = StreamEnd(
    failure=RemoteFailure(
        what="the server of the sandbox failed", next_step="its log says more; start the run again"
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

    def close(self, why: RemoteFailure) -> None:
        """End both directions and report the reason to the client. May be called more than once."""
        self.outgoing.end(StreamEnd(failure=why))
        self.incoming.close()
        self._stop()

    def _run(self) -> None:
        end = _BROKEN
        try:
            end = StreamEnd(words=self._carry(self.incoming, self.outgoing.write))
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
        failed: list[SandboxError] = []

        def send() -> None:
            try:
                for data in incoming:
                    channel.send(data)
            except SandboxError as error:
                failed.append(error)
                channel.close()

        threading.Thread(target=send, name="sandbox-wire", daemon=True).start()
        try:
            while data := channel.receive():
                write(data)
            words = channel.last_words()
        finally:
            channel.close()
        if failed:
            raise failed[0]
        return words

    return carry


def put(machine: Machine, path: str) -> Carry:
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
