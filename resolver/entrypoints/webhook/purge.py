"""Removes old runs and finished requests, or all data of a repository, for `resolver admin
purge`."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    delete,
    func,
    select,
    update,
)

from resolver.entrypoints.webhook.folder_sweep import (
    RUN,
    open_runs,
    purged_folders,
    record_purge,
    remove_folders,
)
from resolver.entrypoints.webhook.missed_deliveries import POLLS
from resolver.entrypoints.webhook.request_queue import OPEN_STATES, RequestState
from resolver.entrypoints.webhook.request_table import REQUESTS
from resolver.errors import UsageError
from resolver.models.repository import owner_of
from resolver.storage.blob_store import BlobStore
from resolver.storage.costs import SPENDING
from resolver.storage.database import ServerDatabase
from resolver.storage.event_table import EVENTS
from resolver.storage.issue_history import (
    HISTORY,
    old_entries,
    runs_of_conversations,
)
from resolver.storage.run_archive import CHUNKS, FILES
from resolver.storage.run_archive import RUNS as ARCHIVED_RUNS
from resolver.storage.run_index import RUNS

RUN_TABLES = (EVENTS, ARCHIVED_RUNS, FILES, CHUNKS, RUNS)
"""The tables with rows of a run."""

MAX_VALUES = 500
"""Maximum number of values that one statement lists."""


@dataclass(frozen=True)
class PurgedData:
    """What was purged, or would be.

    folders: on this machine. objects: in the object store. rows: number of rows in each table,
    except those of requests.
    """

    requests: int
    folders: int
    objects: int
    rows: dict[str, int]

    def plus(self, other: "PurgedData") -> "PurgedData":
        """Return the sum of both."""
        tables = {**self.rows, **other.rows}
        return PurgedData(
            self.requests + other.requests,
            self.folders + other.folders,
            self.objects + other.objects,
            {name: self.rows.get(name, 0) + other.rows.get(name, 0) for name in tables},
        )


@dataclass(frozen=True)
class Retention:
    """How old finished requests and runs get before they are removed.

    default: None for no removal. owners: the same for owners with settings of their own, by their
    login in lower case.
    """

    default: timedelta | None
    owners: Mapping[str, timedelta | None]


@dataclass(frozen=True)
class _Rows:
    """Rows of a table: those that match one of the conditions."""

    table: Table
    conditions: Sequence[ColumnElement[bool]]


class ServerPurge:
    """Removes data of runs from the database, a data folder and the object store.

    Everything in the database is one transaction, so it can be done while servers and workers run.
    The folders of other machines are removed by their own processes (see `folder_sweep`).

    folder: the data folder of this machine. blobs: the object store, if the server has one.
    dry_run: True to count only. Methods raise DatabaseError if the database or the object store
    can't be used; objects that are left then are removed by the next purge.
    """

    def __init__(
        self, database: ServerDatabase, folder: Path, blobs: BlobStore | None, dry_run: bool
    ) -> None:
        self._database = database
        self._folder, self._blobs, self._dry_run = folder, blobs, dry_run

    def purge_old(self, age: timedelta, now: datetime, owner: str = "") -> PurgedData:
        """Remove finished requests and runs that are older than `age`.

        A run is as old as the request for it, except that a run folder counts from the end of its
        run. Costs and everything of an open request stay.

        age: at least `MIN_RETENTION` of the settings. owner: login of the owner to whose
        repositories this is limited; "" for no limit.
        """
        before = now - age
        # The id of a run begins with the time of its request, so ids are in the order of time.
        oldest_kept = f"{before:%Y%m%d-%H%M%S}"
        scope = f"{owner.lower()}/" if owner else ""
        with self._transaction() as connection:
            if not self._dry_run:
                _start_unknown_ages(connection, now)
            kept = open_runs(connection)
            runs = _runs_of(connection, scope) if scope else None
            old = _OldRuns(before, oldest_kept, kept, scope, runs)
            counts = self._remove_rows(connection, _old_rows(connection, old))
            self._record(connection, scope, before)
        return self._remove_files({scope: before.timestamp()}, kept, old.__contains__, counts)

    def purge_by_retention(self, retention: Retention, now: datetime) -> PurgedData:
        """Remove finished requests and runs as `purge_old` does, those of each owner at the age
        that `retention` has for them."""
        ages = {retention.default, *retention.owners.values()}
        if ages == {retention.default} and retention.default is not None:
            return self.purge_old(retention.default, now)
        total = PurgedData(0, 0, 0, {})
        for owner in sorted({*self._owners(), *retention.owners}):
            age = retention.owners.get(owner, retention.default)
            if age is not None:
                total = total.plus(self.purge_old(age, now, owner))
        return total

    def _owners(self) -> set[str]:
        """Return the logins, in lower case, of the owners whose data is stored."""
        columns = (REQUESTS.c.repository, RUNS.c.repository, HISTORY.c.conversation)
        with self._database.reading() as connection:
            return {
                owner_of(name)
                for column in columns
                for name in connection.scalars(select(column).distinct())
            }

    def purge_repository(self, repository: str, now: datetime) -> PurgedData:
        """Remove everything that is stored of a repository, its costs and notes included.

        repository: OWNER/NAME. Raises UsageError if it has a request that is not done.
        """
        key = repository.lower()
        with self._transaction() as connection:
            _require_no_open_request(connection, key)
            kept, runs = open_runs(connection), _runs_of(connection, key)
            counts = self._remove_rows(connection, _rows_of_repository(key, runs))
            self._record(connection, key, now)
        return self._remove_files({key: now.timestamp()}, kept, runs.__contains__, counts)

    def _transaction(self) -> AbstractContextManager[Connection]:
        return self._database.reading() if self._dry_run else self._database.writing()

    def _record(self, connection: Connection, repository: str, before: datetime) -> None:
        if not self._dry_run:
            record_purge(connection, repository, before)

    def _remove_rows(self, connection: Connection, rows: Iterator[_Rows]) -> dict[str, int]:
        """Remove the rows and return their number by the names of the tables."""
        counts: dict[str, int] = {}
        for table_rows in rows:
            counts.setdefault(table_rows.table.name, 0)
            for condition in table_rows.conditions:
                self._require_object_store(connection, table_rows.table, condition)
                query = select(func.count()).select_from(table_rows.table).where(condition)
                counts[table_rows.table.name] += connection.scalar(query) or 0
                if not self._dry_run:
                    connection.execute(delete(table_rows.table).where(condition))
        return counts

    def _require_object_store(
        self, connection: Connection, table: Table, condition: ColumnElement[bool]
    ) -> None:
        """Raise UsageError if the rows name objects that can't be removed."""
        if self._blobs is not None or table.name != FILES.name:
            return
        if connection.execute(select(FILES.c.run).where(condition, FILES.c.blob != "")).first():
            raise UsageError(
                "files of these runs are in an object store",
                "set RESOLVER_BLOB_STORE and its credentials as for the server",
            )

    def _remove_files(
        self,
        purges: dict[str, float],
        kept: Collection[str],
        is_removed: Callable[[str], bool],
        counts: dict[str, int],
    ) -> PurgedData:
        folders = list(purged_folders(self._folder, purges, kept))
        if not self._dry_run:
            remove_folders(folders)
        objects = self._blobs.remove_runs(is_removed, self._dry_run) if self._blobs else 0
        return PurgedData(counts.pop(REQUESTS.name), len(folders), objects, counts)


@dataclass(frozen=True)
class _OldRuns:
    """The runs that are purged because of their age.

    before: they were requested earlier. oldest_kept: start of the ids of runs at that time. kept:
    runs of open requests. scope: `owner/`, or "" for all. runs: all runs of the scope; None if it
    has no limit.
    """

    before: datetime
    oldest_kept: str
    kept: Collection[str]
    scope: str
    runs: Collection[str] | None

    def __contains__(self, run: str) -> bool:
        """Return True if the run is old, and one of the scope."""
        is_old = bool(RUN.fullmatch(run)) and run < self.oldest_kept and run not in self.kept
        return is_old and (self.runs is None or run in self.runs)

    def conditions(self, column: ColumnElement[str]) -> list[ColumnElement[bool]]:
        """Return conditions that together select the runs. column: with ids of runs."""
        if self.runs is None:
            return [and_(column < self.oldest_kept, column.not_in(self.kept))]
        return _batched_conditions(column, sorted(run for run in self.runs if run in self))


def _start_unknown_ages(connection: Connection, now: datetime) -> None:
    """Let requests that an earlier release has finished count from now on."""
    unknown = (REQUESTS.c.state == RequestState.DONE, REQUESTS.c.finished_at == 0)
    connection.execute(update(REQUESTS).where(*unknown).values(finished_at=now.timestamp()))


def _old_rows(connection: Connection, old: _OldRuns) -> Iterator[_Rows]:
    finished_at = REQUESTS.c.finished_at
    is_done = REQUESTS.c.state == RequestState.DONE
    is_in_scope = REQUESTS.c.repository.startswith(old.scope, autoescape=True)
    is_old = and_(is_done, finished_at > 0, finished_at < old.before.timestamp(), is_in_scope)
    yield _Rows(REQUESTS, [is_old])
    for table in RUN_TABLES:
        yield _Rows(table, old.conditions(table.c.run))
    open_conversations = {
        f"{row.repository}#{row.subject}"
        for row in connection.execute(
            select(REQUESTS.c.repository, REQUESTS.c.subject).where(
                REQUESTS.c.state.in_(OPEN_STATES)
            )
        )
    }
    entries = old_entries(
        connection, old.before, old.oldest_kept, old.kept, open_conversations, old.scope
    )
    yield _Rows(HISTORY, _batched_conditions(HISTORY.c.position, entries))


def _require_no_open_request(connection: Connection, repository: str) -> None:
    is_open = (REQUESTS.c.repository == repository, REQUESTS.c.state.in_(OPEN_STATES))
    count = connection.scalar(select(func.count()).select_from(REQUESTS).where(*is_open))
    if count:
        raise UsageError(
            f"{count} requests of {repository} are not done",
            f"see `resolver admin runs --state open --repository {repository}`; cancel them, or "
            "wait until they have ended",
        )


def _runs_of(connection: Connection, scope: str) -> frozenset[str]:
    """Return all runs that are known of `owner/name`, or of all repositories of `owner/`."""
    is_owner = scope.endswith("/")
    listed = runs_of_conversations(connection, scope if is_owner else f"{scope}#")
    for table in (RUNS, SPENDING):
        name = table.c.repository
        is_in_scope = name.startswith(scope, autoescape=True) if is_owner else name == scope
        listed += connection.scalars(select(table.c.run).where(is_in_scope))
    return frozenset(listed)


def _rows_of_repository(repository: str, runs: Collection[str]) -> Iterator[_Rows]:
    for table in (REQUESTS, SPENDING):
        yield _Rows(table, [table.c.repository == repository])
    for table in RUN_TABLES:
        yield _Rows(table, _batched_conditions(table.c.run, sorted(runs)))
    is_of_repository = HISTORY.c.conversation.startswith(f"{repository}#", autoescape=True)
    yield _Rows(HISTORY, [is_of_repository])
    path = func.lower(POLLS.c.webhook)
    yield _Rows(POLLS, [path.contains(f"/repos/{repository}/hooks", autoescape=True)])


def _batched_conditions(
    column: ColumnElement[Any], values: Sequence[Any]
) -> list[ColumnElement[bool]]:
    """Return conditions of limited size which together select the rows with these values."""
    return [
        column.in_(values[start : start + MAX_VALUES])
        for start in range(0, len(values), MAX_VALUES)
    ]
