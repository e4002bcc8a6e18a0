"""Requests of people to a run in progress, and the queue where they wait for the controller."""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from resolver.errors import ResolverError
from resolver.models.run import Extension


@dataclass(frozen=True)
class Stop:
    """Stop the run now.

    by: login of the person who asks, "" for the operator of the machine.
    """

    by: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Pause:
    """Pause the run until Resume."""

    by: str = ""


@dataclass(frozen=True)
class Resume:
    """Resume the run after a Pause."""

    by: str = ""


@dataclass(frozen=True)
class Extend:
    """Extend the limits."""

    extension: Extension
    by: str = ""


@dataclass(frozen=True)
class Say:
    """A person's message to the agent, which is the answer if the agent waits for one."""

    words: str
    by: str = ""


@dataclass(frozen=True)
class Approve:
    """Execute the action that waits, this once.

    at: when it was said, by GitHub's clock; None for somebody who sees the log itself.
    number: number of the action that is meant, "" for the one that waits.
    """

    by: str = ""
    at: datetime | None = None
    number: str = ""


@dataclass(frozen=True)
class Deny:
    """Don't execute the action that waits. `at` and `number` are as in Approve."""

    by: str = ""
    at: datetime | None = None
    reason: str = ""
    number: str = ""


STOP_SECONDS = 0.2
"""Seconds between two attempts to end the running command after a Stop."""

Request = Stop | Pause | Resume | Extend | Say | Approve | Deny


class Control:
    """A queue of requests, filled from any thread and emptied by the run's thread between steps."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._interrupt: Callable[[], None] | None = None
        self._stop_taken = threading.Event()

    def interrupt_with(self, interrupt: Callable[[], None]) -> None:
        """Set the function that ends the running command on a Stop, called in another thread."""
        self._interrupt = interrupt

    def send(self, request: Request) -> None:
        """Add a request and return immediately."""
        self._requests.put(request)
        if isinstance(request, Stop):
            # In a thread, because the sender must not wait and the run's thread may be blocked in
            # the very command that has to end.
            threading.Thread(target=self._end_commands, name="stop", daemon=True).start()

    def _end_commands(self) -> None:
        """End the running command, and any that follows, until the controller takes the Stop.

        One attempt is not enough: the Stop may arrive while the model is queried, and the command
        that the model then asks for could take an hour.
        """
        while not self._stop_taken.wait(STOP_SECONDS):
            if self._interrupt is None:
                continue
            try:
                self._interrupt()
            except ResolverError:  # the sandbox is gone, so the run has ended
                return

    @property
    def is_empty(self) -> bool:
        """True if no request waits."""
        return self._requests.empty()

    def take(self) -> Request | None:
        """Return the oldest waiting request, None if there is none."""
        try:
            return self._taken(self._requests.get_nowait())
        except queue.Empty:
            return None

    def wait(self, seconds: float) -> Request | None:
        """Return the next request, None if none arrives in time."""
        try:
            return self._taken(self._requests.get(timeout=seconds))
        except queue.Empty:
            return None

    def _taken(self, request: Request) -> Request:
        if isinstance(request, Stop):
            self._stop_taken.set()
        return request
