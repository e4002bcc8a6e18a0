"""Secrets that come to be while a run is at work, as tokens that are good for an hour: from the
moment they exist every redactor that was given this knows them.
"""

import threading
from datetime import datetime, timedelta

KEPT_AFTER = timedelta(hours=1)
"""How long a secret is still taken out of texts after it has ended: a log may quote it late."""


class IssuedTokens:
    """A growing set of secrets. For several threads at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: dict[str, datetime] = {}
        self._values: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """Those there are now; another object whenever they have changed."""
        return self._values

    def add(self, secret: str, ends: datetime, now: datetime) -> None:
        """From now on `secret` is one. Those that ended long ago are forgotten."""
        with self._lock:
            kept = {s: end for s, end in self._ends.items() if now < end + KEPT_AFTER}
            self._ends = {**kept, secret: ends}
            self._values = tuple(self._ends)
