"""A clock for the length of a run, which a change of the system's clock does not move."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from resolver.events.stream import Clock, utc_now

logger = logging.getLogger("resolver.events")

JUMP = timedelta(minutes=1)
"""Difference to the system's clock that is logged. Smaller ones are corrections by NTP."""


@dataclass
class SteadyClock:
    """A clock that starts with the system's time and advances with the monotonic clock.

    Otherwise a correction of the machine's time by an hour would use up an hour of the run's time
    limit. The monotonic clock does not advance either while the machine is suspended, when no run
    works. Source: https://man7.org/linux/man-pages/man2/clock_gettime.2.html

    system: the system's clock. monotonic: returns seconds from any starting point.
    """

    system: Clock = utc_now
    monotonic: Callable[[], float] = time.monotonic
    _started_at: datetime = field(init=False)
    _start: float = field(init=False)
    _jumped: timedelta = field(init=False, default=timedelta(0))

    def __post_init__(self) -> None:
        self._started_at, self._start = self.system(), self.monotonic()

    def __call__(self) -> datetime:
        """Return the present time."""
        now = self._started_at + timedelta(seconds=self.monotonic() - self._start)
        difference = self.system() - now
        jump = difference - self._jumped
        if abs(jump) >= JUMP:
            self._jumped = difference
            logger.warning(
                "the system's clock moved %s by %.0f seconds: it was set, or the machine was "
                "suspended; the run does not count them",
                "forward" if jump > timedelta(0) else "back",
                abs(jump).total_seconds(),
            )
        return now
