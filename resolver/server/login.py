"""Our own login, where no setting says it: asked of GitHub once, remembered, and never waited for
so long that a delivery could not be answered in time.
"""

import threading
import time
from collections.abc import Callable

WAITS = 5.0
"""Seconds that a delivery waits for the answer; GitHub waits 10 for ours."""

ASKED_AGAIN = 60.0
"""Seconds after an answer that did not come, in which nobody asks."""

Ask = Callable[[], str]
"""Asks for the login; "" when it can't be had. Never raises."""


class OwnLogin:
    """One server's. Safe to use from several threads."""

    def __init__(self, waits: float = WAITS, again: float = ASKED_AGAIN) -> None:
        self._waits, self._again = waits, again
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._not_before = 0.0
        self._late = False
        self._login = ""

    def get(self, ask: Ask) -> str:
        """The login, "" while it is not known. `ask` is called in a thread of its own, and never
        twice at a time; once an answer was late nobody waits for it any more."""
        with self._lock:
            if self._login:
                return self._login
            if self._asking is None and time.monotonic() >= self._not_before:
                self._asking = threading.Thread(
                    target=self._ask, args=(ask,), name="own-login", daemon=True
                )
                self._late = False
                self._asking.start()
            asking, late = self._asking, self._late
        if asking is not None and not late:
            asking.join(self._waits)
            self._late = asking.is_alive()
        return self._login

    def _ask(self, ask: Ask) -> None:
        found = ""
        try:
            found = ask()
        finally:
            with self._lock:
                self._login, self._asking = found, None
                self._not_before = time.monotonic() + self._again
