"""Removes finished requests and runs that are older than the setting `retention_days`, once a day.

Each process of a server does it, for the rows of all and for the run folders of its own machine.
"""

import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import URL, ColumnElement, String, Table, cast, delete, select

from resolver.entrypoints.webhook.request_queue import OPEN_STATES, RequestState
from resolver.entrypoints.webhook.request_table import REQUESTS, run_of_request
from resolver.errors import ResolverError
from resolver.events.stream import utc_now
from resolver.runtime.disk import remove_tree
from resolver.storage.blob_store import BlobStore
from resolver.storage.database import ServerDatabase
from resolver.storage.event_table import EVENTS
from resolver.storage.issue_history import HISTORY
from resolver.storage.run_archive import CHUNKS, FILES
from resolver.storage.run_archive import RUNS as ARCHIVED_RUNS
from resolver.storage.run_folders import is_run_id
from resolver.storage.run_index import RUNS

logger = logging.getLogger("resolver.entrypoints.webhook")

INTERVAL_SECONDS = 86_400.0
"""Interval in seconds between two removals. The first one is at the start of the process."""

RUN_TABLES = (EVENTS, ARCHIVED_RUNS, FILES, CHUNKS, RUNS)
"""The tables with rows of a run. Its cost is kept in another one."""


class RetentionTask:
    """Removes what is too old, in a thread of its own. What belongs to an open request is kept.

    url: as returned by `database.parse_database_url`. folder: the data folder of this machine.
    days: the age in days; 0 to remove nothing. blobs: the object store, if the server has one.
    """

    def __init__(self, url: URL, folder: Path, days: int, blobs: BlobStore | None = None) -> None:
        self._url, self._folder, self._days, self._blobs = url, folder, days, blobs

    def start(self) -> None:
        """Remove what is too old now and every day, in the background."""
        if self._days:
            threading.Thread(target=self._run_daily, name="retention", daemon=True).start()

    def remove_old(self, now: datetime) -> None:
        """Remove what is too old.

        Raises ResolverError if the database or the object store can't be used, and OSError. What is
        left then is removed the next time.
        """
        before = now - timedelta(days=self._days)
        # The id of a run begins with the time of its request, so ids are in the order of time.
        oldest_kept = f"{before:%Y%m%d-%H%M%S}"
        # No connection is held between two removals.
        with closing(ServerDatabase(self._url)) as database:
            open_runs = _open_runs_before(database, oldest_kept)
            for table, condition in _old_rows(before, oldest_kept, open_runs):
                # Each in a transaction of its own: in SQLite, deliveries wait for it.
                with database.writing() as connection:
                    count = connection.execute(delete(table).where(condition)).rowcount
                logger.debug("%d old rows of %s were removed", count, table.name)

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

    def _run_daily(self) -> None:
        while True:
            try:
                self.remove_old(utc_now())
            except (ResolverError, OSError) as error:
                logger.warning("old runs could not be removed: %s", error)
            threading.Event().wait(INTERVAL_SECONDS)


def _open_runs_before(database: ServerDatabase, oldest_kept: str) -> frozenset[str]:
    """Return the old runs of requests that are not done."""
    query = select(REQUESTS.c.trigger).where(REQUESTS.c.state.in_(OPEN_STATES))
    with database.reading() as connection:
        runs = map(run_of_request, connection.scalars(query).all())
        return frozenset(run for run in runs if run < oldest_kept)


def _old_rows(
    before: datetime, oldest_kept: str, open_runs: Collection[str]
) -> Iterator[tuple[Table, ColumnElement[bool]]]:
    """Yield conditions that select the old rows of each table."""
    time, columns = before.timestamp(), REQUESTS.c
    for table in RUN_TABLES:
        yield table, (table.c.run < oldest_kept) & table.c.run.not_in(open_runs)
    # A stop must be found as long as a request from before it waits.
    conversation = columns.repository + "#" + cast(columns.subject, String)
    open_conversations = select(conversation).where(
        columns.state.in_(OPEN_STATES), columns.subject.is_not(None)
    )
    is_over = HISTORY.c.conversation.not_in(open_conversations)
    yield HISTORY, (HISTORY.c.recorded_at < time) & is_over
    yield REQUESTS, (columns.state == RequestState.DONE) & (columns.finished_at < time)
