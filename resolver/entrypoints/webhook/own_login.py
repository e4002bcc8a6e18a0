"""Our own login, where no setting says it: asked of GitHub once, remembered, and never waited for
so long that a delivery could not be answered in time.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from resolver.errors import ResolverError

logger = logging.getLogger("resolver.entrypoints.webhook")

WAITS = 5.0
"""Seconds that a delivery waits for the answer; GitHub waits 10 for ours."""

ASKED_AGAIN = 60.0
"""Seconds after an answer that did not come, in which nobody asks."""

KEPT_ASKING = 6 * 3600.0
"""Seconds in which a stored request is kept whose asking is whether it is for us at all."""

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


def login_from_github(payload: Mapping[str, Any]) -> str:
    """Login of the account that was assigned, or asked for a review; "" where there is none."""
    field = "assignee" if payload.get("action") == "assigned" else "requested_reviewer"
    account = payload.get(field)
    login = account.get("login") if isinstance(account, Mapping) else None
    return login if isinstance(login, str) else ""


def is_own_login(
    login: str, ask: Ask, again: float = ASKED_AGAIN / 4, most: float = KEPT_ASKING
) -> bool:
    """Whether the login is ours, asked every `again` seconds while that can't be had. After `most`
    it counts as somebody else's. ask: here it raises ResolverError when it does not know."""
    end = time.monotonic() + most
    while True:
        try:
            return ask().casefold() == login.casefold()
        except ResolverError as error:
            if time.monotonic() >= end:
                logger.error("whether %s is our own login is not known: %s", login, error.what)
                return False
            logger.info("whether %s is our own login is asked again: %s", login, error.what)
        time.sleep(again)
