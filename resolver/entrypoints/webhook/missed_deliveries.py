"""Processes deliveries of the App's webhook that did not reach the server. GitHub does not repeat a
failed delivery.

At the start the delivery attempts of the last days are listed, and then those since the last poll.
If all attempts of a delivery failed, its payload is read through GitHub's API and processed as
usual, which has no effect if that was done before. See
https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from resolver.entrypoints.webhook.webhook import HandleDelivery, is_identified
from resolver.errors import ForgeError, ResolverError
from resolver.events.stream import Clock, utc_now
from resolver.github.client.app import AppAccess, HookDelivery
from resolver.github.client.resources import PAGE_SIZE
from resolver.models.known_failures import OUTAGES

logger = logging.getLogger("resolver.entrypoints.webhook")

POLL_SECONDS = 300.0
"""Interval between two polls in seconds."""

UNREACHABLE_POLL_SECONDS = 10.0
"""The same for a server that GitHub has never reached, so that all deliveries may fail. GitHub
allows an App some thousand requests an hour."""

MAX_AGE = timedelta(days=3)
"""Time for which GitHub keeps deliveries."""

OVERLAP = timedelta(minutes=15)
"""Overlap of two polls: an attempt is listed only once it has ended."""

MAX_PAGES = 50
"""Maximum number of pages, of 100 attempts each, in one poll."""


class MissedDeliveries:
    """Polls for missed deliveries.

    app: returns the access to the App whose webhook delivers to this server; may raise ForgeError.
    handle_delivery: processes a delivery, as the webhook does. Several processes may poll, because
    a delivery is stored once.
    is_reached: True if GitHub is known to reach the server.
    """

    def __init__(
        self,
        app: Callable[[], AppAccess],
        handle_delivery: HandleDelivery,
        now: Clock = utc_now,
        is_reached: bool = False,
    ) -> None:
        self.is_reached = is_reached
        self._app, self._handle_delivery, self._now = app, handle_delivery, now
        self._processed_until = now() - MAX_AGE

    def poll_forever(self) -> None:
        """Poll at intervals. An error of GitHub or of the database is logged once."""
        last_error = None
        while True:
            try:
                self.poll()
                last_error = None
            except ResolverError as error:
                if error.what != last_error:
                    logger.warning(
                        "missed deliveries could not be read from GitHub: %s", error.what
                    )
                last_error = error.what
            time.sleep(POLL_SECONDS if self.is_reached else UNREACHABLE_POLL_SECONDS)

    def poll(self) -> None:
        """Process the missed deliveries.

        Raises ForgeError and DatabaseError; the next poll then starts from the same time again.
        """
        now, app = self._now(), self._app()
        since = max(self._processed_until - OVERLAP, now - MAX_AGE)
        attempts = list(app.delivery_attempts(since, MAX_PAGES))
        if len(attempts) >= MAX_PAGES * PAGE_SIZE:
            logger.warning("deliveries before %s are not checked", attempts[-1].delivered_at)
        received = {attempt.guid for attempt in attempts if attempt.is_received}
        self.is_reached = self.is_reached or bool(received)
        missed = {attempt.guid: attempt for attempt in attempts if attempt.guid not in received}
        # oldest first, the order in which they would have arrived
        for attempt in sorted(missed.values(), key=lambda attempt: attempt.delivered_at):
            if is_identified(attempt.guid, attempt.event):
                self._process_attempt(app, attempt)
        self._processed_until = now

    def _process_attempt(self, app: AppAccess, attempt: HookDelivery) -> None:
        try:
            payload = app.delivery_payload(attempt)
        except ForgeError as error:
            # These errors pass or can be repaired, so the delivery is tried again at the next poll.
            if error.cause in OUTAGES or error.cause == "token":
                raise
            logger.warning("missed delivery %s is lost: %s", attempt.guid, error.what)
            return
        result = self._handle_delivery(attempt.guid, attempt.event, payload)
        logger.info("missed delivery %s (%s): %s", attempt.guid, attempt.event, result)
