"""Removes finished requests and runs that are older than RETENTION_DAYS, once a day.
Each process of a server does it."""

import logging
import threading
from datetime import datetime, timedelta

from sqlalchemy import delete

from resolver.entrypoints.webhook.request_queue import RequestQueue
from resolver.errors import ResolverError
from resolver.events.stream import utc_now
from resolver.storage.database import ServerDatabase
from resolver.storage.run_index import RUNS, STOPS
from resolver.storage.run_store import RunStore

logger = logging.getLogger("resolver.entrypoints.webhook")

INTERVAL_SECONDS = 86_400.0
"""Interval in seconds between two removals. The first one is at the start of the process."""

RETENTION_DAYS = 90
"""Age at which runs and requests are removed. GitHub redelivers for three days, and a redelivery
must find its request."""


class RetentionTask:
    """Removes what is too old, in a thread of its own. What belongs to an open request is kept.

    days: the age in days.
    """

    def __init__(
        self,
        database: ServerDatabase,
        queue: RequestQueue,
        store: RunStore,
        days: int = RETENTION_DAYS,
    ) -> None:
        self._database, self._queue, self._store, self._days = database, queue, store, days

    def remove_old(self, now: datetime) -> None:
        """Remove what is too old.

        Raises ResolverError if the database or the store of runs can't be used. What is left then
        is removed the next time.
        """
        before = now - timedelta(days=self._days)
        # The id of a run begins with the time of its request, so ids are in the order of time.
        oldest_kept = f"{before:%Y%m%d-%H%M%S}"
        unfinished = self._queue.unfinished()
        open_runs = {run for request in unfinished if (run := request.run) and run < oldest_kept}
        # A stop must be found as long as a request from before it waits.
        is_over = STOPS.c.conversation.not_in({request.conversation for request in unfinished})
        for removal in (
            delete(RUNS).where(RUNS.c.run < oldest_kept, RUNS.c.run.not_in(open_runs)),
            delete(STOPS).where(STOPS.c.recorded_at < before.timestamp(), is_over),
        ):
            # Each in a transaction of its own: in SQLite, deliveries wait for it.
            with self._database.writing() as connection:
                connection.execute(removal)
        self._queue.remove_finished(before)
        count = self._store.remove(lambda run: run < oldest_kept and run not in open_runs)
        if count:
            logger.info("%d old runs were removed", count)

    def run_daily(self) -> None:
        """Remove what is too old now and every day."""
        while True:
            try:
                self.remove_old(utc_now())
            except ResolverError as error:
                logger.warning("old runs could not be removed: %s", error)
            threading.Event().wait(INTERVAL_SECONDS)
