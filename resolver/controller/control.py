"""What a person asks of a run that is at work: the requests, and where they wait until the
controller takes them.
"""

import queue
from dataclasses import dataclass

from resolver.model import Extension


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


Request = Stop | Pause | Resume | Extend | Say


class Control:
    """A mailbox: requests from any thread, taken by the run's own between two steps."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()

    def send(self, request: Request) -> None:
        """Ask for it; returns at once."""
        self._requests.put(request)

    def take(self) -> Request | None:
        """The oldest request that waits, None when there is none."""
        try:
            return self._requests.get_nowait()
        except queue.Empty:
            return None

    def wait(self, seconds: float) -> Request | None:
        """The next request, None when none came in time."""
        try:
            return self._requests.get(timeout=seconds)
        except queue.Empty:
            return None
