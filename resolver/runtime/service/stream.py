"""A stream of a sandbox: a thread that carries between a machine and the client.

The functions `wire`, `put` and `get` are what the thread may do.
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
"""(bytes from the client, write to the client) -> last words."""

_BROKEN: Final = StreamEnd(
    failure=RemoteFailure(
        what="the server of the sandbox failed", next_step="its log says more; start the run again"
    )
)


class Stream:
    """Carries from its making on. stop: called by `close`, to free a thread that waits."""

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
        """End both directions; the client is told why. May be called again."""
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
            # The loop may be gone when the server ends in the middle of this.
            with contextlib.suppress(RuntimeError):
                self.outgoing.end(end)
                self._loop.call_soon_threadsafe(self.incoming.close)


def wire(channel: Channel) -> Carry:
    """Carries the action server's stdin and stdout."""

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
    """Carries an archive into the sandbox."""

    def carry(incoming: Iterable[bytes], write: Callable[[bytes], None]) -> str:  # noqa: ARG001
        machine.put_archive(path, iter(incoming))
        return ""

    return carry


def get(machine: Machine, path: str) -> Carry:
    """Carries an archive out of the sandbox."""

    def carry(incoming: Iterable[bytes], write: Callable[[bytes], None]) -> str:  # noqa: ARG001
        for chunk in machine.get_archive(path):
            write(chunk)
        return ""

    return carry
