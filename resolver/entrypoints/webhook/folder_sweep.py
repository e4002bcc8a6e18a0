"""Removes the local folders of purged runs, on every machine that has one.

A purge is recorded in the database, since `resolver admin purge` reaches the data folder of its own
machine only. Each process looks at the records at its start and every hour.
"""

import logging
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

from pydantic_core import from_json
from sqlalchemy import URL, Column, Connection, Float, String, Table, case, select

from resolver.entrypoints.webhook.request_queue import OPEN_STATES
from resolver.entrypoints.webhook.request_table import REQUESTS
from resolver.errors import ResolverError
from resolver.models.repository import owner_of
from resolver.models.run import Trigger
from resolver.runs.common import run_id
from resolver.runs.output import REQUEST
from resolver.runtime.disk import remove_tree
from resolver.storage.database import ServerDatabase, upsert
from resolver.storage.run_store import OUTCOME
from resolver.storage.schema import TABLES

logger = logging.getLogger("resolver.entrypoints.webhook")

SWEEP_SECONDS = 3600.0
"""Interval in seconds between two readings of the records."""

PURGES = Table(
    "resolver_purges",
    TABLES,
    Column("repository", String(300), primary_key=True),
    Column("before", Float, nullable=False),
)
"""What was purged. repository: in lower case, `owner/name`, or `owner/` for all of an owner; "" for
all. before: end of the newest run that was purged (seconds since 1970)."""

RUN = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")


def run_of_request(trigger: str) -> str:
    """Return the run of a request. trigger: its JSON in the table; "" once the request is done."""
    if not trigger:
        return ""
    parsed = Trigger.model_validate_json(trigger)
    return run_id(parsed.key, parsed.at)


def open_runs(connection: Connection) -> frozenset[str]:
    """Return the runs of all requests that are not done."""
    query = select(REQUESTS.c.trigger).where(REQUESTS.c.state.in_(OPEN_STATES))
    return frozenset(run_of_request(trigger) for trigger in connection.scalars(query).all())


def record_purge(connection: Connection, repository: str, before: datetime) -> None:
    """Let all machines remove the folders of runs that ended before that time.

    repository: as in `PURGES`.
    """
    time, stored = before.timestamp(), PURGES.c.before
    newest = case((stored < time, time), else_=stored)
    upsert(connection, PURGES, {"repository": repository, "before": time}, {"before": newest})


def purged_folders(
    folder: Path, purges: Mapping[str, float], kept: Collection[str]
) -> Iterator[Path]:
    """Yield the folders of purged runs.

    purges: as in `PURGES`. kept: runs of open requests. If only a repository was purged, its runs
    that never ended count from their request.
    """
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if RUN.fullmatch(path.name) is None or path.name in kept or path.is_symlink():
            continue
        ended = _changed_at(path / OUTCOME)
        if ended is not None and ended < purges.get("", 0.0):
            yield path
        elif len(purges) > ("" in purges):
            repository = _repository_of(path)
            owner = f"{owner_of(repository)}/"
            last = ended if ended is not None else _changed_at(path / REQUEST)
            is_purged = last is not None and last < purges.get(repository, 0.0)
            if is_purged or (ended is not None and ended < purges.get(owner, 0.0)):
                yield path


def remove_folders(paths: Iterable[Path]) -> None:
    """Remove the folders. One that another process removes at the same time is no error."""
    for path in paths:
        with suppress(FileNotFoundError):
            remove_tree(path)


class FolderSweep:
    """Removes the folders of purged runs below one data folder, in a thread of its own.

    url: as returned by `database.parse_database_url`.
    """

    def __init__(self, url: URL, folder: Path) -> None:
        self._url, self._folder = url, folder

    def start(self) -> None:
        """Start to look at the records in the background."""
        threading.Thread(target=self._sweep_forever, name="sweep", daemon=True).start()

    def sweep(self) -> int:
        """Remove the folders of purged runs and return their number.

        Raises DatabaseError, UsageError if the database can't be used, and OSError.
        """
        # No connection is held between two sweeps.
        with closing(ServerDatabase(self._url)) as database, database.reading() as connection:
            rows = connection.execute(select(PURGES.c.repository, PURGES.c.before)).all()
            kept = open_runs(connection) if rows else frozenset()
        purges = {row.repository: row.before for row in rows}
        paths = list(purged_folders(self._folder, purges, kept)) if purges else []
        remove_folders(paths)
        if paths:
            logger.info("the folders of %d purged runs were removed", len(paths))
        return len(paths)

    def _sweep_forever(self) -> None:
        while True:
            try:
                self.sweep()
            except (ResolverError, OSError) as error:
                logger.warning("folders of purged runs could not be removed: %s", error)
            threading.Event().wait(SWEEP_SECONDS)


def _changed_at(path: Path) -> float | None:
    try:
        return path.lstat().st_mtime
    except OSError:
        return None


def _repository_of(folder: Path) -> str:
    """Return the repository of a run in lower case; "" if its request can't be read."""
    try:
        trigger = from_json((folder / REQUEST).read_bytes())["trigger"]
        return str(trigger["repository"]).lower()
    except (OSError, ValueError, KeyError, TypeError):
        return ""
