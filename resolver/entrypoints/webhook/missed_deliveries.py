"""Takes in the deliveries that did not reach the server: GitHub sends none again by itself.

At the start and every few minutes the webhook's attempts since the last look are listed. Where all
attempts of a delivery failed, its payload is read by GitHub's API and taken in as any other.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from sqlalchemy import URL, Column, Float, MetaData, String, Table, delete, insert, select

from resolver.entrypoints.webhook.database import ServerDatabase
from resolver.entrypoints.webhook.webhook import Accept, is_identified
from resolver.errors import ForgeError, ResolverError
from resolver.events.stream import Clock, utc_now
from resolver.github.client.hook_deliveries import PAGE_SIZE, HookDelivery
from resolver.models.known_failures import OUTAGES

logger = logging.getLogger("resolver.entrypoints.webhook")

LOOK_SECONDS = 300.0
"""Between two looks."""

LOOK_BACK = timedelta(days=3)
"""For so long GitHub keeps deliveries."""

OVERLAP = timedelta(minutes=15)
"""How far a look goes back before the one before it: an attempt is listed when it has ended."""

MAX_PAGES = 50
"""Pages of 100 attempts in one look."""

LOOKS = Table(
    "resolver_looks",
    MetaData(),
    Column("webhook", String(400), primary_key=True),
    Column("until", Float, nullable=False),
)
"""Of each webhook: up to when its deliveries are known to be taken in (seconds since 1970)."""


class DeliverySource(Protocol):
    """The deliveries of one webhook, as `HookDeliveries` reads them."""

    @property
    def path(self) -> str:
        """Tells the webhook from others."""
        ...

    def attempts(self, since: datetime, max_pages: int) -> Iterable[HookDelivery]:
        """Attempts from that moment on, the newest first. Raises ForgeError."""
        ...

    def payload(self, attempt: HookDelivery) -> dict[str, Any]:
        """What was to be delivered. Raises ForgeError."""
        ...


FindSources = Callable[[], Iterable[DeliverySource]]
"""The webhooks that deliver to this server. Raises ForgeError."""


class MissedDeliveries:
    """Looks for them. accept: takes a delivery in, as the webhook does."""

    def __init__(
        self, url: URL, sources: FindSources, accept: Accept, now: Clock = utc_now
    ) -> None:
        self._database = ServerDatabase(url, LOOKS)
        self._sources, self._accept, self._now = sources, accept, now

    def start(self) -> None:
        """Look in the background from now on."""
        threading.Thread(target=self._watch, name="missed-deliveries", daemon=True).start()

    def _watch(self) -> None:
        failed = ""
        while True:
            try:
                self.look()
                failed = ""
            except ResolverError as error:
                if error.what != failed:
                    logger.warning("missed deliveries are not known: %s", error.what)
                failed = error.what
            time.sleep(LOOK_SECONDS)

    def look(self) -> int:
        """Take in what was missed; how many deliveries. Raises ForgeError and DatabaseError, and
        then looks there again the next time."""
        return sum(self._look_at(source) for source in self._sources())

    def _look_at(self, source: DeliverySource) -> int:
        now = self._now()
        since = max(self._known_until(source) - OVERLAP, now - LOOK_BACK)
        attempts = list(source.attempts(since, MAX_PAGES))
        if len(attempts) >= MAX_PAGES * PAGE_SIZE:
            logger.warning("deliveries before %s are not looked at", attempts[-1].delivered_at)
        received = {each.guid for each in attempts if each.is_received}
        missed = {each.guid: each for each in attempts if each.guid not in received}
        # the oldest first, as they would have come
        for attempt in sorted(missed.values(), key=lambda each: each.delivered_at):
            self._take_in(source, attempt)
        self._note(source, now)
        return len(missed)

    def _take_in(self, source: DeliverySource, attempt: HookDelivery) -> None:
        if not is_identified(attempt.guid, attempt.event):
            return
        try:
            payload = source.payload(attempt)
        except ForgeError as error:
            if error.cause in OUTAGES or error.cause == "token":
                raise
            logger.warning("missed delivery %s is lost: %s", attempt.guid, error.what)
            return
        done = self._accept(attempt.guid, attempt.event, payload)
        logger.info("missed delivery %s (%s): %s", attempt.guid, attempt.event, done)

    def _known_until(self, source: DeliverySource) -> datetime:
        until = select(LOOKS.c.until).where(LOOKS.c.webhook == source.path)
        with self._database.reading() as connection:
            return datetime.fromtimestamp(connection.scalar(until) or 0.0, UTC)

    def _note(self, source: DeliverySource, until: datetime) -> None:
        with self._database.writing() as connection:
            connection.execute(delete(LOOKS).where(LOOKS.c.webhook == source.path))
            connection.execute(insert(LOOKS).values(webhook=source.path, until=until.timestamp()))

    def close(self) -> None:
        """Close all connections."""
        self._database.close()
