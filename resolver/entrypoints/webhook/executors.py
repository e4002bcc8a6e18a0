"""The processes that execute the requests of one database, and the lease that each of them holds.

A process registers as an executor under a new id and renews its lease every few seconds. When the
lease has ended, any other process may revoke its claims and continue its runs. A process that was
suspended, or cut off from the database, must not write anything from then on: its `Fence` says so
by the local clock, without a request that could block or arrive too late.

The technique and why the clock of the process alone is not enough for it (the fence is checked
before a write, and the write takes time, hence `SAFETY_SECONDS`):
https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
"""

import logging
import threading
import time
from collections.abc import Callable

from resolver.errors import LeaseLost

logger = logging.getLogger("resolver.entrypoints.webhook")

LEASE_SECONDS = 30.0
"""Duration of a lease. A dead executor is noticed after this time at the latest."""

HEARTBEAT_SECONDS = 5.0
"""Interval between two renewals of the lease."""

SAFETY_SECONDS = 5.0
"""Time before the end of the lease at which its holder stops to write, for writes that are under
way then."""

BootTime = Callable[[], float]
"""Returns seconds of a clock that also advances while the machine is suspended."""


def boot_time() -> float:
    """Return the seconds since the machine was started, including the time that it was suspended.

    Source: https://man7.org/linux/man-pages/man2/clock_gettime.2.html (CLOCK_BOOTTIME)
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Fence:
    """Says if this process may still write for an executor. Thread-safe.

    executor: its id. expires: True if the lease ends unless `extend` is called in time. A fence
    that has closed never opens again.
    """

    def __init__(self, executor: str, expires: bool = True, clock: BootTime = boot_time) -> None:
        self.executor = executor
        self._clock = clock
        self._lock = threading.Lock()
        self._is_closed = False
        self._valid_until = clock() if expires else float("inf")

    def extend(self, requested_at: float, seconds: float) -> None:
        """Record that the database has confirmed a lease of `seconds`.

        requested_at: this clock's time before the request was sent, so that the lease ends here no
        later than in the database.
        """
        with self._lock:
            if not self._is_closed:
                self._valid_until = max(self._valid_until, requested_at + seconds - SAFETY_SECONDS)

    def close(self) -> None:
        """End the permission to write at once."""
        with self._lock:
            self._is_closed = True

    @property
    def is_valid(self) -> bool:
        """True while this process may write."""
        with self._lock:
            # A lease that has ended stays lost, even if a late answer would extend it.
            self._is_closed = self._is_closed or self._clock() >= self._valid_until
            return not self._is_closed

    def require_valid(self) -> None:
        """Raise LeaseLost unless this process may write. Never blocks."""
        if not self.is_valid:
            raise LeaseLost(f"the lease of executor {self.executor} has ended")
