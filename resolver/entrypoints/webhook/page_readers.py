"""Decides what a reader of the server's pages may see and do."""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from resolver.entrypoints.webhook.bounded_cache import BoundedCache
from resolver.entrypoints.webhook.github_oauth import GitHubUsers, Level
from resolver.entrypoints.webhook.page_sessions import PageSession
from resolver.errors import ForgeError
from resolver.events.stream import Clock, utc_now

logger = logging.getLogger("resolver.entrypoints.webhook")

CACHE_DURATION = timedelta(minutes=5)
"""How long an answer of GitHub about what a person can read is used."""

MAX_CACHED_ANSWERS = 2_000

_Value = TypeVar("_Value")


class SessionEnded(Exception):
    """GitHub no longer accepts the token of a session: the person has to log in again."""


@dataclass(frozen=True)
class _CachedAnswer:
    value: object
    until: datetime


class ReaderAccess:
    """Asks GitHub what a person can read, with the person's own token. Thread-safe.

    Methods raise SessionEnded, and ForgeError if GitHub does not answer.
    """

    def __init__(self, users: GitHubUsers, now: Clock = utc_now) -> None:
        self._users, self._now = users, now
        self._cache = BoundedCache[tuple[str, str], _CachedAnswer](MAX_CACHED_ANSWERS)

    def repositories(self, session: PageSession) -> frozenset[str]:
        """Return the repositories, in lower case, whose runs the person may see in lists."""
        return self._cached(session, "", lambda: frozenset(self._users.repositories(session.token)))

    def level(self, session: PageSession, repository: str, is_fresh: bool = False) -> Level:
        """Return what the person may do in the repository. is_fresh: True to ask GitHub in any
        case, before something is done."""
        name = repository.lower()

        def ask() -> Level:
            return self._users.level(session.token, name)

        return self._ask(ask) if is_fresh else self._cached(session, name, ask)

    def _cached(self, session: PageSession, about: str, ask: Callable[[], _Value]) -> _Value:
        # The token itself is not kept.
        key = hashlib.sha256(session.token.encode()).hexdigest(), about
        now = self._now()
        cached = self._cache.get(key)
        if cached is not None and now < cached.until:
            return cached.value  # type: ignore[return-value]
        value = self._ask(ask)
        self._cache.put(key, _CachedAnswer(value, now + CACHE_DURATION))
        return value

    @staticmethod
    def _ask(ask: Callable[[], _Value]) -> _Value:
        try:
            return ask()
        except ForgeError as error:
            if error.cause == "token":
                raise SessionEnded from None
            raise
