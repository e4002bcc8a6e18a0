"""Secrets that are created during a run, such as GitHub installation tokens, which expire after an
hour. Every redactor that holds the same set recognizes them from the moment they are issued.
"""

import threading
from datetime import datetime, timedelta

KEPT_AFTER = timedelta(hours=1)
"""How long an expired secret is still redacted: a log may quote it late."""


class IssuedTokens:
    """A growing set of secrets that is safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: dict[str, datetime] = {}
        self._values: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """The current secrets. The object stays the same until the next `add`, so that callers can
        detect changes by identity."""
        return self._values

    def add(self, secret: str, ends: datetime, now: datetime) -> None:
        """Add a secret that expires at `ends`, and drop those that expired long before `now`."""
        with self._lock:
            kept = {s: end for s, end in self._ends.items() if now < end + KEPT_AFTER}
            self._ends = {**kept, secret: ends}
            self._values = tuple(self._ends)
