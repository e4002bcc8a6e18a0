"""What a person asks of a run that is at work: the requests, and where they wait until the
controller takes them.
"""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from resolver.errors import ResolverError
from resolver.models.run import Extension


@dataclass(frozen=True)
class Stop:
    """End now. by: login of who asked, "" for the machine's operator."""

    by: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Pause:
    """Do nothing until Resume."""

    by: str = ""


@dataclass(frozen=True)
class Resume:
    """Go on after a Pause."""

    by: str = ""


@dataclass(frozen=True)
class Extend:
    """Grant more on top of the limits."""

    extension: Extension
    by: str = ""


@dataclass(frozen=True)
class Say:
    """Words of a person for the agent; the answer when it waits for one."""

    words: str
    by: str = ""


@dataclass(frozen=True)
class Approve:
    """Do the action that waits, this once. at: when it was said, by the forge's clock; None for
    somebody who sees the log as it is. number: of the action that is meant, "" for what waits."""

    by: str = ""
    at: datetime | None = None
    number: str = ""


@dataclass(frozen=True)
class Deny:
    """Don't do the action that waits. at, number: as in Approve."""

    by: str = ""
    at: datetime | None = None
    reason: str = ""
    number: str = ""


STOP_SECONDS = 0.2
"""Between two attempts to end the command that runs."""

Request = Stop | Pause | Resume | Extend | Say | Approve | Deny


class Control:
    """A mailbox: requests from any thread, taken by the run's own between two steps."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._interrupt: Callable[[], None] | None = None
        self._stop_taken = threading.Event()

    def interrupt_with(self, interrupt: Callable[[], None]) -> None:
        """How a Stop ends the command that runs; called in another thread."""
        self._interrupt = interrupt

    def send(self, request: Request) -> None:
        """Ask for it; returns at once."""
        self._requests.put(request)
        if isinstance(request, Stop):
            threading.Thread(target=self._end_commands, name="stop", daemon=True).start()

    def _end_commands(self) -> None:
        """End whatever command runs, and the next one, until the Stop is taken: it may have come
        while the model was thinking, and the command that follows could take an hour."""
        while not self._stop_taken.wait(STOP_SECONDS):
            if self._interrupt is None:
                continue
            try:
                self._interrupt()
            except ResolverError:  # the sandbox is gone, and the run with it
                return

    @property
    def is_empty(self) -> bool:
        """Whether everything that was asked has been taken."""
        return self._requests.empty()

    def take(self) -> Request | None:
        """The oldest request that waits, None when there is none."""
        try:
            return self._taken(self._requests.get_nowait())
        except queue.Empty:
            return None

    def wait(self, seconds: float) -> Request | None:
        """The next request, None when none came in time."""
        try:
            return self._taken(self._requests.get(timeout=seconds))
        except queue.Empty:
            return None

    def _taken(self, request: Request) -> Request:
        if isinstance(request, Stop):
            self._stop_taken.set()
        return request
