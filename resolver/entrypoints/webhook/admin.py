"""What `resolver admin` reads and changes in the server's database and data folder.

Everything is a transaction of its own, so that it can be done while servers and workers run.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    MetaData,
    String,
    Table,
    and_,
    column,
    delete,
    func,
    inspect,
    select,
    table,
    update,
)

from resolver.entrypoints.webhook.database import ServerDatabase
from resolver.entrypoints.webhook.request_queue import RequestKind, RequestState
from resolver.entrypoints.webhook.request_table import REQUESTS
from resolver.entrypoints.webhook.schema import stored_revision
from resolver.errors import UsageError
from resolver.models.run import Trigger
from resolver.runs.common import run_id
from resolver.runs.output import OUTCOME
from resolver.runtime.disk import remove_tree

MIN_AGE = timedelta(days=4)
"""Minimum age of what is purged. GitHub redelivers for three days, and a redelivery must find its
request."""

RUN_TABLES = (
    "resolver_events",
    "resolver_archived_runs",
    "resolver_run_files",
    "resolver_run_chunks",
    "resolver_runs",
)
"""The tables with rows of a run, which is in their column `run`."""

_EXECUTORS = table(
    "resolver_executors",
    *map(column, ("id", "kind", "host", "version", "slots", "draining")),
    *map(column, ("started_at", "lease_until")),
)
_CLAIMS = table("resolver_requests", *map(column, ("executor", "kind", "state")))

OPEN_STATES = tuple(state for state in RequestState if state is not RequestState.DONE)

_RUN = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")


@dataclass(frozen=True)
class ListedRequest:
    """A request in the queue, as `resolver admin runs` shows it.

    run: id of its run; "" once the request is done, because the trigger is removed then.
    not_before: earliest time of a deferred request. finished_at: None until it is done.
    """

    id: str
    run: str
    kind: str
    state: str
    repository: str
    number: int | None
    attempts: int
    crashes: int
    outages: int
    not_before: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True)
class StoredExecutor:
    """A process that executes requests, as `resolver admin executors` shows it.

    lease_until: the process is regarded as dead after this time. runs: number of its active runs.
    """

    id: str
    kind: str
    host: str
    version: str
    slots: int
    runs: int
    draining: bool
    started_at: datetime
    lease_until: datetime


@dataclass(frozen=True)
class PurgedData:
    """What was purged, or would be. rows: number of rows in each table of runs."""

    requests: int
    folders: int
    rows: dict[str, int]


class ServerAdministration:
    """Reads and changes the queue and the stored runs. Methods raise DatabaseError.

    url: as returned by `database.parse_database_url`. Raises UsageError if it can't be used.
    """

    def __init__(self, url: URL) -> None:
        self._database = ServerDatabase(url)

    def revision(self) -> str:
        """Return the revision of the database, which is the newest one."""
        with self._database.reading() as connection:
            return stored_revision(connection)

    def requests(
        self, state: str = "", repository: str = "", limit: int = 50
    ) -> list[ListedRequest]:
        """Return the newest requests, the newest first. state: "" for all, "open" for those that
        are not done."""
        columns = REQUESTS.c
        query = select(REQUESTS).order_by(columns.position.desc()).limit(limit)
        if state:
            states = OPEN_STATES if state == "open" else (state,)
            query = query.where(columns.state.in_(states))
        if repository:
            query = query.where(columns.repository == repository.lower())
        with self._database.reading() as connection:
            return [_stored_request(row) for row in connection.execute(query)]

    def requeue(self, id: str) -> ListedRequest:
        """Let a deferred request be started now, without the crashes and outages that it has had.

        id: of the request or of its run. Raises UsageError if there is none, or it is not deferred.
        """
        values = {"not_before": 0.0, "crashes": 0, "outages": 0, "outage_began": 0.0}
        return self._change(id, (RequestState.DEFERRED,), RequestState.WAITING, values)

    def cancel(self, id: str, now: datetime) -> ListedRequest:
        """End a request that waits or is deferred. Its conversation is not told.

        id: of the request or of its run. Raises UsageError if there is none, or it does not wait.
        """
        values = {"trigger": "", "finished_at": now.timestamp()}
        states = (RequestState.WAITING, RequestState.DEFERRED)
        return self._change(id, states, RequestState.DONE, values)

    def _change(
        self, id: str, allowed: Collection[str], state: str, values: dict[str, Any]
    ) -> ListedRequest:
        columns = REQUESTS.c
        with self._database.writing() as connection:
            row = _find(connection, id)
            changed = connection.execute(
                update(REQUESTS)
                .where(columns.position == row.position, columns.state.in_(allowed))
                .values(state=state, **values)
            )
            if changed.rowcount == 0:
                raise UsageError(
                    f"{id} is {row.state}, not {' or '.join(allowed)}", _NEXT_STEPS[row.state]
                )
        return _stored_request(row)

    def executors(self) -> list[StoredExecutor]:
        """Return the processes that execute requests, the longest-running first."""
        columns = _EXECUTORS.c
        with self._database.reading() as connection:
            active = (
                select(func.count())
                .select_from(_CLAIMS)
                .where(_CLAIMS.c.executor == columns.id, _CLAIMS.c.kind == RequestKind.RUN)
                .where(_CLAIMS.c.state == RequestState.WORKING)
                .scalar_subquery()
            )
            query = select(_EXECUTORS, active.label("runs")).order_by(columns.started_at)
            return [
                StoredExecutor(
                    row.id,
                    row.kind,
                    row.host,
                    row.version,
                    row.slots,
                    row.runs,
                    bool(row.draining),
                    datetime.fromtimestamp(row.started_at, UTC),
                    datetime.fromtimestamp(row.lease_until, UTC),
                )
                for row in connection.execute(query)
            ]

    def set_draining(self, id: str, draining: bool) -> int:
        """Let an executor claim nothing more, or claim again, and return how many were told.

        Its active runs continue. id: "" for all executors. Raises UsageError if there is none.
        """
        change = update(_EXECUTORS).values(draining=draining)
        if id:
            change = change.where(_EXECUTORS.c.id == id)
        with self._database.writing() as connection:
            count = connection.execute(change).rowcount
        if not count:
            raise UsageError(
                f"there is no executor {id}" if id else "there is no executor",
                "see `resolver admin executors`; a process registers itself when it starts",
            )
        return count

    def purge(self, folder: Path, age: timedelta, now: datetime, dry_run: bool) -> PurgedData:
        """Remove finished requests and runs that are older than `age`. Costs and outcomes stay.

        folder: the data folder. A run is as old as the request for it, except that a run folder
        counts from the end of its run. Nothing of an open request is removed. Raises UsageError if
        `age` is too short.
        """
        if age < MIN_AGE:
            raise UsageError(
                f"what is younger than {MIN_AGE.days} days can't be purged: GitHub redelivers for "
                "three days, and a redelivery must find its request",
                f"give an age of {MIN_AGE.days}d or more",
            )
        before = now - age
        with self._database.reading() as connection:
            open_runs = set(_open_runs(connection))
        folders = [path for path in _run_folders(folder, before) if path.name not in open_runs]
        counts: dict[str, int] = {}
        transaction = self._database.reading if dry_run else self._database.writing
        with transaction() as connection:
            if not dry_run:
                _start_unknown_ages(connection, now)
            for each, is_old in _old_rows(connection, before, open_runs):
                rows = select(func.count()).select_from(each).where(is_old)
                counts[each.name] = connection.scalar(rows) or 0
                if not dry_run:
                    connection.execute(delete(each).where(is_old))
        if not dry_run:
            for path in folders:
                remove_tree(path)
        return PurgedData(counts.pop(REQUESTS.name), len(folders), counts)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


_NEXT_STEPS = {
    RequestState.WAITING: "it starts as soon as there is room; nothing is to be done",
    RequestState.DEFERRED: "see `resolver admin runs --state deferred`",
    RequestState.WORKING: "stop an active run with the comment `@agent stop`",
    RequestState.DONE: "ask again in the conversation",
}


def _find(connection: Connection, id: str) -> Any:
    """Return the row of a request by its id or that of its run. Raises UsageError."""
    row = connection.execute(select(REQUESTS).where(REQUESTS.c.id == id)).first()
    if row is None and _RUN.fullmatch(id):
        query = select(REQUESTS).where(REQUESTS.c.state.in_(OPEN_STATES))
        row = next((each for each in connection.execute(query) if _run_of(each) == id), None)
    if row is None:
        raise UsageError(
            f"no open request has the id {id!r}", "see `resolver admin runs` for the ids"
        )
    return row


def _stored_request(row: Any) -> ListedRequest:
    def time_of(seconds: float) -> datetime | None:
        return datetime.fromtimestamp(seconds, UTC) if seconds else None

    return ListedRequest(
        id=row.id,
        run=_run_of(row),
        kind=row.kind,
        state=row.state,
        repository=row.repository,
        number=row.number,
        attempts=row.attempts,
        crashes=row.crashes,
        outages=row.outages,
        not_before=time_of(row.not_before) if row.state == RequestState.DEFERRED else None,
        finished_at=time_of(row.finished_at),
    )


def _run_of(row: Any) -> str:
    if not row.trigger:
        return ""
    trigger = Trigger.model_validate_json(row.trigger)
    return run_id(trigger.key, trigger.at)


def _open_runs(connection: Connection) -> Iterator[str]:
    query = select(REQUESTS.c.trigger).where(REQUESTS.c.state.in_(OPEN_STATES))
    return (_run_of(row) for row in connection.execute(query).all())


def _run_folders(folder: Path, before: datetime) -> Iterator[Path]:
    """Yield the folders of the runs that ended before that time."""
    for outcome in sorted(folder.glob(f"*/{OUTCOME}")):
        ended = outcome.lstat().st_mtime
        if _RUN.fullmatch(outcome.parent.name) and ended < before.timestamp():
            yield outcome.parent


def _start_unknown_ages(connection: Connection, now: datetime) -> None:
    """Let requests that an earlier release has finished count from now on."""
    unknown = (REQUESTS.c.state == RequestState.DONE, REQUESTS.c.finished_at == 0)
    connection.execute(update(REQUESTS).where(*unknown).values(finished_at=now.timestamp()))


def _old_rows(
    connection: Connection, before: datetime, open_runs: Collection[str]
) -> Iterator[tuple[Table, ColumnElement[bool]]]:
    """Yield each table that can be purged, and the condition of its old rows.

    The id of a run begins with the time of its request, so ids are in the order of time.
    """
    finished_at = REQUESTS.c.finished_at
    is_done = REQUESTS.c.state == RequestState.DONE
    yield REQUESTS, and_(is_done, finished_at > 0, finished_at < before.timestamp())
    inspector = inspect(connection)
    for name in RUN_TABLES:
        if inspector.has_table(name):
            of_runs = Table(name, MetaData(), Column("run", String(200)))
            oldest_kept = f"{before:%Y%m%d-%H%M%S}"
            yield of_runs, and_(of_runs.c.run < oldest_kept, of_runs.c.run.not_in(open_runs))
