"""Processes deliveries that did not reach the server. GitHub does not repeat a failed delivery.

At the start and every few minutes the delivery attempts since the last poll are listed. If all
attempts of a delivery failed, its payload is read through GitHub's API and processed as usual. See
https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries
"""

import logging
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from sqlalchemy import URL, Column, Float, String, Table, select

from resolver.entrypoints.webhook.webhook import HandleDelivery, is_identified
from resolver.errors import ForgeError, ResolverError
from resolver.events.stream import Clock, utc_now
from resolver.github.client.hook_deliveries import HookDeliveries, HookDelivery
from resolver.github.client.resources import PAGE_SIZE
from resolver.models.known_failures import OUTAGES
from resolver.storage.database import ServerDatabase, open_database, upsert
from resolver.storage.schema import TABLES

logger = logging.getLogger("resolver.entrypoints.webhook")

POLL_INTERVAL_SECONDS = 300.0
"""Interval between two polls in seconds."""

MAX_AGE = timedelta(days=3)
"""Time for which GitHub keeps deliveries."""

OVERLAP = timedelta(minutes=15)
"""Overlap of two polls: an attempt is listed only once it has ended."""

MAX_PAGES = 50
"""Maximum number of pages, of 100 attempts each, in one poll."""

POLLS = Table(
    "resolver_looks",
    TABLES,
    Column("webhook", String(400), primary_key=True),
    Column("until", Float, nullable=False),
)
"""Time up to which the deliveries of each webhook have been processed (seconds since 1970)."""


FindSources = Callable[[], Iterable[HookDeliveries]]
"""Returns the webhooks that deliver to this server. Raises ForgeError."""


class MissedDeliveries:
    """Polls for missed deliveries.

    handle_delivery: processes a delivery, as the webhook does. interval: between two polls in
    seconds. Several processes may poll, because a delivery is stored once.
    """

    def __init__(
        self,
        database: URL | ServerDatabase,
        sources: FindSources,
        handle_delivery: HandleDelivery,
        now: Clock = utc_now,
        interval: float = POLL_INTERVAL_SECONDS,
    ) -> None:
        self._database = open_database(database)
        self._sources, self._handle_delivery, self._now = sources, handle_delivery, now
        self._interval = interval

    def poll_forever(self) -> None:
        """Poll at intervals. An error of GitHub or of the database is logged."""
        last_error = ""
        while True:
            try:
                self.poll()
                last_error = ""
            except ResolverError as error:
                if error.what != last_error:
                    logger.warning(
                        "missed deliveries could not be read from GitHub: %s", error.what
                    )
                last_error = error.what
            time.sleep(self._interval)

    def poll(self) -> int:
        """Process the missed deliveries and return their number.

        Raises ForgeError and DatabaseError; the next poll then starts from the same time again.
        """
        return sum(self._poll_source(source) for source in self._sources())

    def _poll_source(self, source: HookDeliveries) -> int:
        now = self._now()
        since = max(self._processed_until(source) - OVERLAP, now - MAX_AGE)
        attempts = list(source.attempts(since, MAX_PAGES))
        if len(attempts) >= MAX_PAGES * PAGE_SIZE:
            logger.warning("deliveries before %s are not checked", attempts[-1].delivered_at)
        received = {attempt.guid for attempt in attempts if attempt.is_received}
        missed = {attempt.guid: attempt for attempt in attempts if attempt.guid not in received}
        # oldest first, the order in which they would have arrived
        for attempt in sorted(missed.values(), key=lambda attempt: attempt.delivered_at):
            self._process_attempt(source, attempt)
        self._store_poll(source, now)
        return len(missed)

    def _process_attempt(self, source: HookDeliveries, attempt: HookDelivery) -> None:
        if not is_identified(attempt.guid, attempt.event):
            return
        try:
            payload = source.payload(attempt)
        except ForgeError as error:
            # These errors pass or can be repaired, so the delivery is tried again at the next poll.
            if error.cause in OUTAGES or error.cause == "token":
                raise
            logger.warning("missed delivery %s is lost: %s", attempt.guid, error.what)
            return
        result = self._handle_delivery(attempt.guid, attempt.event, payload)
        logger.info("missed delivery %s (%s): %s", attempt.guid, attempt.event, result)

    def _processed_until(self, source: HookDeliveries) -> datetime:
        until = select(POLLS.c.until).where(POLLS.c.webhook == source.path)
        with self._database.reading() as connection:
            return datetime.fromtimestamp(connection.scalar(until) or 0.0, UTC)

    def _store_poll(self, source: HookDeliveries, until: datetime) -> None:
        values = {"until": until.timestamp()}
        with self._database.writing() as connection:
            upsert(connection, POLLS, {"webhook": source.path, **values}, values)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()
