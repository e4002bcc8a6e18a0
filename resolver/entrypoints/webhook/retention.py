"""Removes finished requests and runs that are older than RETENTION_DAYS, once a day.

Each process of a server does it, for the rows of all and for the run folders of its own machine.
"""

import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import ColumnElement, Table, delete

from resolver.entrypoints.webhook.request_queue import QueuedRequest, RequestQueue
from resolver.errors import ResolverError
from resolver.events.stream import utc_now
from resolver.runtime.disk import remove_tree
from resolver.storage.blob_store import BlobStore
from resolver.storage.database import ServerDatabase
from resolver.storage.event_table import EVENTS
from resolver.storage.issue_history import HISTORY
from resolver.storage.run_archive import CHUNKS, FILES
from resolver.storage.run_archive import RUNS as ARCHIVED_RUNS
from resolver.storage.run_index import RUNS
from resolver.storage.run_store import is_run_id

logger = logging.getLogger("resolver.entrypoints.webhook")

INTERVAL_SECONDS = 86_400.0
"""Interval in seconds between two removals. The first one is at the start of the process."""

RETENTION_DAYS = 90
"""Age at which runs and requests are removed. GitHub redelivers for three days, and a redelivery
must find its request."""

RUN_TABLES = (EVENTS, ARCHIVED_RUNS, FILES, CHUNKS, RUNS)
"""The tables with rows of a run. Its cost is kept in another one."""


class RetentionTask:
    """Removes what is too old, in a thread of its own. What belongs to an open request is kept.

    folder: the data folder of this machine.
    days: the age in days. blobs: the object store, if the server has one.
    """

    def __init__(
        self,
        database: ServerDatabase,
        queue: RequestQueue,
        folder: Path,
        days: int = RETENTION_DAYS,
        blobs: BlobStore | None = None,
    ) -> None:
        self._database, self._queue = database, queue
        self._folder, self._days, self._blobs = folder, days, blobs

    def remove_old(self, now: datetime) -> None:
        """Remove what is too old.

        Raises ResolverError if the database or the object store can't be used, and OSError. What is
        left then is removed the next time.
        """
        before = now - timedelta(days=self._days)
        # The id of a run begins with the time of its request, so ids are in the order of time.
        oldest_kept = f"{before:%Y%m%d-%H%M%S}"
        unfinished = self._queue.unfinished()
        open_runs = {request.run for request in unfinished if request.run < oldest_kept}
        for table, condition in _old_rows(before, oldest_kept, unfinished, open_runs):
            # Each in a transaction of its own: in SQLite, deliveries wait for it.
            with self._database.writing() as connection:
                count = connection.execute(delete(table).where(condition)).rowcount
            logger.debug("%d old rows of %s were removed", count, table.name)
        self._queue.remove_finished(before)

        def is_old(run: str) -> bool:
            return is_run_id(run) and run < oldest_kept and run not in open_runs

        if self._blobs is not None:
            self._blobs.remove_runs(is_old)
        folders = [
            path for path in self._folder.iterdir() if is_old(path.name) and not path.is_symlink()
        ]
        for path in folders:
            with suppress(FileNotFoundError):
                remove_tree(path)
        if folders:
            logger.info("the folders of %d old runs were removed", len(folders))

    def run_daily(self) -> None:
        """Remove what is too old now and every day."""
        while True:
            try:
                self.remove_old(utc_now())
            except (ResolverError, OSError) as error:
                logger.warning("old runs could not be removed: %s", error)
            threading.Event().wait(INTERVAL_SECONDS)


def _old_rows(
    before: datetime,
    oldest_kept: str,
    unfinished: Collection[QueuedRequest],
    open_runs: Collection[str],
) -> Iterator[tuple[Table, ColumnElement[bool]]]:
    """Yield conditions that select the old rows of each table."""
    for table in RUN_TABLES:
        yield table, (table.c.run < oldest_kept) & table.c.run.not_in(open_runs)
    # A stop must be found as long as a request from before it waits.
    is_over = HISTORY.c.conversation.not_in({request.conversation for request in unfinished})
    yield HISTORY, (HISTORY.c.recorded_at < before.timestamp()) & is_over
