"""Removes finished requests and runs that are older than RETENTION_DAYS, once a day.
Each process of a server does it."""

import logging
import time
from datetime import datetime, timedelta

from sqlalchemy import delete

from resolver.entrypoints.webhook.request_queue import RequestQueue
from resolver.errors import ResolverError
from resolver.events.stream import utc_now
from resolver.storage.database import ServerDatabase
from resolver.storage.run_index import RUNS
from resolver.storage.run_store import RunStore

logger = logging.getLogger("resolver.entrypoints.webhook")

INTERVAL_SECONDS = 86_400.0
"""Interval in seconds between two removals. The first one is at the start of the process."""

RETENTION_DAYS = 90
"""Age at which runs and requests are removed. GitHub redelivers for three days, and a redelivery
must find its request."""


def remove_old(
    database: ServerDatabase, queue: RequestQueue, store: RunStore, now: datetime
) -> None:
    """Remove what is too old. Nothing waits as long as that.

    Raises ResolverError if the database or the store of runs can't be used. What is left then is
    removed the next time.
    """
    before = now - timedelta(days=RETENTION_DAYS)
    # The id of a run begins with the time of its request, so ids are in the order of time.
    oldest_kept = f"{before:%Y%m%d-%H%M%S}"
    with database.writing() as connection:
        connection.execute(delete(RUNS).where(RUNS.c.run < oldest_kept))
    queue.remove_finished(before)
    count = store.remove(lambda run: run < oldest_kept)
    if count:
        logger.info("%d old runs were removed", count)


def remove_daily(database: ServerDatabase, queue: RequestQueue, store: RunStore) -> None:
    """Remove what is too old now and every day."""
    while True:
        try:
            remove_old(database, queue, store, utc_now())
        except ResolverError as error:
            logger.warning("old runs could not be removed: %s", error)
        time.sleep(INTERVAL_SECONDS)
