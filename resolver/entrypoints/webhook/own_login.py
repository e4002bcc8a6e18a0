"""Finds out Resolver's own login if no setting has it.

GitHub is asked once and the answer is cached. A delivery never waits so long for it that it could
not be answered in time.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from resolver.errors import ResolverError

logger = logging.getLogger("resolver.entrypoints.webhook")

WAIT_SECONDS = 5.0
"""Seconds that a delivery waits for the login; GitHub waits 10 seconds for the delivery's
answer."""

RETRY_DELAY_SECONDS = 60.0
"""Seconds after a failed request in which no other request is made."""

MAX_WAIT_SECONDS = 6 * 3600.0
"""Seconds for which a stored request is kept while it is unknown if it is for Resolver at all."""

Ask = Callable[[], str]
"""Asks GitHub for the login and returns it; "" if it is unknown. Never raises."""


class OwnLogin:
    """The cached login of one server. Thread-safe."""

    def __init__(
        self, wait_seconds: float = WAIT_SECONDS, retry_seconds: float = RETRY_DELAY_SECONDS
    ) -> None:
        self._wait_seconds, self._retry_seconds = wait_seconds, retry_seconds
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._not_before = 0.0
        self._is_late = False
        self._login = ""

    def get(self, ask: Ask) -> str:
        """Return the login, "" while it is unknown.

        `ask` is called in its own thread and never twice at a time. Once an answer was late, no
        other call waits for it.
        """
        with self._lock:
            if self._login:
                return self._login
            if self._thread is None and time.monotonic() >= self._not_before:
                self._thread = threading.Thread(
                    target=self._ask, args=(ask,), name="own-login", daemon=True
                )
                self._is_late = False
                self._thread.start()
            thread, is_late = self._thread, self._is_late
        if thread is not None and not is_late:
            thread.join(self._wait_seconds)
            self._is_late = thread.is_alive()
        return self._login

    def _ask(self, ask: Ask) -> None:
        login = ""
        try:
            login = ask()
        finally:
            with self._lock:
                self._login, self._thread = login, None
                self._not_before = time.monotonic() + self._retry_seconds


def login_from_github(payload: Mapping[str, Any]) -> str:
    """Return the login of the account that was assigned or asked for a review; "" if there is
    none."""
    field = "assignee" if payload.get("action") == "assigned" else "requested_reviewer"
    account = payload.get(field)
    login = account.get("login") if isinstance(account, Mapping) else None
    return login if isinstance(login, str) else ""


def is_own_login(
    login: str,
    ask: Ask,
    retry_seconds: float = RETRY_DELAY_SECONDS / 4,
    max_seconds: float = MAX_WAIT_SECONDS,
) -> bool:
    """Return True if the login is Resolver's own.

    While GitHub does not answer, it is asked every `retry_seconds`. After `max_seconds` the login
    counts as somebody else's. ask: unlike elsewhere, raises ResolverError if the login is unknown.
    """
    deadline = time.monotonic() + max_seconds
    while True:
        try:
            return ask().casefold() == login.casefold()
        except ResolverError as error:
            if time.monotonic() >= deadline:
                logger.error(
                    "could not determine if %s is Resolver's own login: %s", login, error.what
                )
                return False
            logger.info("asking again if %s is Resolver's own login: %s", login, error.what)
        time.sleep(retry_seconds)
