"""The queue of requests in SQLite or PostgreSQL: one table, with an index for each query."""

import threading
import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    URL,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    case,
    func,
    select,
    text,
    union_all,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from resolver.entrypoints.webhook.database import ServerDatabase
from resolver.entrypoints.webhook.insertion import Insertion, insert_batch
from resolver.entrypoints.webhook.request_queue import (
    ISOLATED_AFTER,
    MAX_LISTED,
    Backlog,
    MeasureProgress,
    NewRequest,
    QueuedRequest,
    RequestKind,
    RequestsAhead,
    RequestState,
    StartedRequest,
)
from resolver.models.run import Trigger

REQUESTS = Table(
    "resolver_requests",
    MetaData(),
    Column(
        "position",
        BigInteger().with_variant(Integer(), "sqlite"),
        primary_key=True,
        autoincrement=True,
    ),
    Column("id", String(300), nullable=False, unique=True),
    Column("kind", String(10), nullable=False),
    Column("state", String(10), nullable=False),
    Column("repository", Text, nullable=False),
    Column("number", BigInteger),
    Column("subject", BigInteger),
    Column("key", Text, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("login", Text, nullable=False),
    Column("not_before", Float, nullable=False, default=0.0),
    Column("announced", Boolean, nullable=False, default=False),
    Column("claim", Integer, nullable=False, default=0),
    Column("begun", Boolean, nullable=False, default=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("progress", Integer, nullable=False, default=0),
    Column("crashes", Integer, nullable=False, default=0),
    Column("outages", Integer, nullable=False, default=0),
    Column("outage_began", Float, nullable=False, default=0.0),
    Column("finished_at", Float, nullable=False, default=0.0, server_default="0"),
    Index("resolver_requests_next", "state", "kind", "repository", "position"),
    Index("resolver_requests_oldest", "state", "kind", "position"),
    Index("resolver_requests_due", "state", "not_before"),
    Index("resolver_requests_announced", "state", "kind", "announced", "position"),
    Index("resolver_requests_thread", "repository", "subject", "state"),
    sqlite_autoincrement=True,
)
"""Columns: key: of the trigger. begun: True if the work of the claim has started. attempts: how
often work has started. progress: of the run at the last crash; crashes: of the server since the run
last made progress. trigger: as JSON; "" once the request is done. finished_at: 0 in rows of
releases that did not record it. Times are seconds since 1970."""

FIRST_OF_EACH_REPOSITORY = text(f"""
WITH RECURSIVE lanes(repository) AS (
    SELECT min(repository) FROM {REQUESTS.name} WHERE state = 'waiting' AND kind = 'run'
    UNION ALL
    SELECT (
        SELECT min(following.repository) FROM {REQUESTS.name} AS following
        WHERE following.state = 'waiting' AND following.kind = 'run'
        AND following.repository > lanes.repository
    ) FROM lanes WHERE lanes.repository IS NOT NULL
)
SELECT position FROM (
    SELECT (
        SELECT min(first.position) FROM {REQUESTS.name} AS first
        WHERE first.state = 'waiting' AND first.kind = 'run'
        AND first.repository = lanes.repository
    ) AS position
    FROM lanes WHERE lanes.repository IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM {REQUESTS.name} AS working
        WHERE working.state = 'working' AND working.kind = 'run'
        AND working.repository = lanes.repository
    )
) AS heads ORDER BY position LIMIT :limit
""")  # noqa: S608 - the table's own name
"""Selects the positions of the runs that can start: the first one of each repository without an
active run. It jumps from one repository to the next in the index (a "loose index scan") and so does
not read the runs behind the first.

Source: https://wiki.postgresql.org/wiki/Loose_indexscan
"""

ALL_REPOSITORIES = text(f"""
WITH RECURSIVE known(repository) AS (
    SELECT min(repository) FROM {REQUESTS.name}
    UNION ALL
    SELECT (
        SELECT min(following.repository) FROM {REQUESTS.name} AS following
        WHERE following.repository > known.repository
    ) FROM known WHERE known.repository IS NOT NULL
)
SELECT repository FROM known WHERE repository IS NOT NULL LIMIT :limit
""")  # noqa: S608 - the table's own name


FIRST_WAIT_AFTER_CRASH = timedelta(minutes=1)
"""Delay before an isolated run is repeated after a crash; doubled after each further crash."""


class SqlRequestQueue:
    """Implements `RequestQueue` with a table.

    url: as returned by `database.parse_database_url`. Raises UsageError if the database can't be
    used.
    """

    def __init__(self, url: URL) -> None:
        self._database = ServerDatabase(url)
        insert = sqlite.insert if url.get_backend_name() == "sqlite" else postgresql.insert
        statement = insert(REQUESTS).on_conflict_do_nothing(index_elements=["id"]).inline()
        self._insertion = statement.execution_options(preserve_rowcount=True)
        self._pending: list[Insertion] = []
        self._pending_lock, self._insert_lock = threading.Lock(), threading.Lock()

    def add(self, request: NewRequest) -> bool:
        """Implement `RequestQueue.add`.

        Requests that arrive at the same time share one transaction: the thread that gets the lock
        inserts those of all threads that wait for it. A slow disk then limits how long one request
        takes, but not how many are stored per second. See `insert_batch` for a row that is refused.
        """
        insertion = Insertion(_values_of(request))
        with self._pending_lock:
            self._pending.append(insertion)
        with self._insert_lock:
            if not insertion.done:
                with self._pending_lock:
                    batch, self._pending = self._pending, []
                insert_batch(self._database, self._insertion, batch)
        if insertion.error is not None:
            raise insertion.error
        return insertion.is_new

    def claim(self, kind: RequestKind, limit: int, now: datetime) -> list[QueuedRequest]:
        """Implement `RequestQueue.claim`."""
        table = REQUESTS.c
        is_kind = table.kind == kind
        working_crashes = select(table.crashes).where(table.state == RequestState.WORKING, is_kind)
        # without the write lock, since most polls find nothing
        with self._database.reading() as connection:
            is_full = len(connection.execute(working_crashes).all()) >= limit
            if is_full or not connection.execute(_startable_query(kind, now)).first():
                return []
        with self._database.writing() as connection:
            _lock_table(connection)
            # Deferred requests that are due keep their position, so they come before newer ones.
            connection.execute(
                update(REQUESTS)
                .where(table.state == RequestState.DEFERRED, table.not_before <= now.timestamp())
                .values(state=RequestState.WAITING)
            )
            active_crashes = list(connection.scalars(working_crashes))
            free = limit - len(active_crashes)
            # Nothing is claimed while an isolated run is active: it has the server to itself.
            if free <= 0 or any(crashes >= ISOLATED_AFTER for crashes in active_crashes):
                return []
            if kind is RequestKind.RUN:
                result = connection.execute(FIRST_OF_EACH_REPOSITORY, {"limit": free})
                positions = list(result.scalars())
            else:
                waiting = select(table.position).where(table.state == RequestState.WAITING, is_kind)
                positions = list(connection.scalars(waiting.order_by(table.position).limit(free)))
            rows = _read_rows(connection, positions)
            # The claim number is incremented, so that workflows of earlier claims can't change the
            # row any more.
            chosen = _until_isolated(rows, bool(active_crashes))
            connection.execute(
                update(REQUESTS)
                .where(table.position.in_([row.position for row in chosen]))
                .values(state=RequestState.WORKING, claim=table.claim + 1, begun=False)
            )
            return [_request_of_row(row, row.claim + 1) for row in chosen]

    def start(self, id: str, claim: int) -> StartedRequest | None:
        """Implement `RequestQueue.start`."""
        with self._database.writing() as connection:
            result = connection.execute(
                _update_of_claim(id, claim).values(begun=True, attempts=REQUESTS.c.attempts + 1)
            )
            if result.rowcount == 0:
                return None
            row = connection.execute(select(REQUESTS).where(REQUESTS.c.id == id)).one()
        outage_began = datetime.fromtimestamp(row.outage_began, UTC) if row.outage_began else None
        return StartedRequest(
            _request_of_row(row, claim), row.attempts, row.crashes, row.outages, outage_began
        )

    def finish(self, id: str, claim: int) -> None:
        """Implement `RequestQueue.finish`."""
        with self._database.writing() as connection:
            connection.execute(
                _update_of_claim(id, claim).values(
                    state=RequestState.DONE, trigger="", finished_at=time.time()
                )
            )

    def defer(self, id: str, claim: int, until: datetime, outage: datetime | None = None) -> None:
        """Implement `RequestQueue.defer`."""
        table = REQUESTS.c
        values: dict[str, Any] = {
            "state": RequestState.DEFERRED,
            "not_before": until.timestamp(),
        }
        if outage is not None:
            outage_began = case((table.outages > 0, table.outage_began), else_=outage.timestamp())
            values |= {"outages": table.outages + 1, "outage_began": outage_began}
        with self._database.writing() as connection:
            connection.execute(_update_of_claim(id, claim).values(**values))

    def recover(self, stopped: bool, progress: MeasureProgress, now: datetime) -> None:
        """Implement `RequestQueue.recover`.

        A crash counts against a run that has made no progress since it was started. If several runs
        were active, it is not known which one caused the crash; after `ISOLATED_AFTER` crashes such
        a run is executed alone.
        """
        table = REQUESTS.c
        with self._database.writing() as connection:
            _lock_table(connection)
            claimed = select(REQUESTS).where(table.state == RequestState.WORKING)
            rows = connection.execute(claimed).all()
            active_runs = [row for row in rows if row.begun and row.kind == RequestKind.RUN]
            for row in rows:
                values: dict[str, Any] = {"state": RequestState.WAITING, "begun": False}
                if row in active_runs and not stopped:
                    values |= _after_crash(
                        row, progress(_trigger_of(row)), len(active_runs) == 1, now
                    )
                connection.execute(
                    update(REQUESTS).where(table.position == row.position).values(**values)
                )

    def requests_ahead(self, request: QueuedRequest) -> RequestsAhead:
        """Implement `RequestQueue.requests_ahead`. Several events of one request count once."""
        table = REQUESTS.c
        in_repository = (
            table.kind == RequestKind.RUN,
            table.repository == request.trigger.repository.lower(),
            table.key != request.trigger.key,
        )
        columns = select(table.position, table.number, table.key)
        working = columns.where(table.state == RequestState.WORKING, *in_repository)
        waiting = (
            columns.where(
                table.state == RequestState.WAITING,
                table.position < request.position,
                *in_repository,
            )
            .order_by(table.position)
            .limit(MAX_LISTED)
            .subquery()
        )
        with self._database.reading() as connection:
            active = connection.execute(working.limit(MAX_LISTED)).all()
            rows = [*active, *connection.execute(select(waiting)).all()][:MAX_LISTED]
        numbers = dict.fromkeys(row.number for row in rows if row.number is not None)
        return RequestsAhead(tuple(numbers), len({row.key for row in rows}))

    def unannounced(self, limit: int) -> list[QueuedRequest]:
        """Implement `RequestQueue.unannounced`."""
        table = REQUESTS.c
        query = (
            select(REQUESTS)
            .where(table.state == RequestState.WAITING, table.kind == RequestKind.RUN)
            .where(table.announced.is_(False))
            .order_by(table.position)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [_request_of_row(row, row.claim) for row in connection.execute(query).all()]

    def mark_announced(self, requests: Collection[QueuedRequest]) -> None:
        """Implement `RequestQueue.mark_announced`."""
        positions = [request.position for request in requests]
        with self._database.writing() as connection:
            connection.execute(
                update(REQUESTS).where(REQUESTS.c.position.in_(positions)).values(announced=True)
            )

    def unfinished_runs(self, repository: str, subject: int | None) -> list[Trigger]:
        """Implement `RequestQueue.unfinished_runs`."""
        table = REQUESTS.c
        query = (
            select(REQUESTS)
            .where(table.repository == repository.lower(), table.subject == subject)
            .where(
                table.state.in_([state for state in RequestState if state is not RequestState.DONE])
            )
            .where(table.kind == RequestKind.RUN)
            .order_by(table.position)
            .limit(MAX_LISTED)
        )
        with self._database.reading() as connection:
            return [_trigger_of(row) for row in connection.execute(query).all()]

    def repositories(self) -> list[str]:
        """Implement `RequestQueue.repositories`."""
        with self._database.reading() as connection:
            return list(connection.scalars(ALL_REPOSITORIES, {"limit": MAX_LISTED}))

    def backlog(self) -> Backlog:
        """Implement `RequestQueue.backlog`."""
        table = REQUESTS.c
        open_states = [state for state in RequestState if state is not RequestState.DONE]
        counts = (
            select(table.state, func.count())
            .where(table.state.in_(open_states))
            .group_by(table.state)
        )
        first = (
            select(table.trigger)
            .where(table.state == RequestState.WAITING)
            .order_by(table.position)
            .limit(1)
        )
        with self._database.reading() as connection:
            by_state = {row[0]: row[1] for row in connection.execute(counts)}
            oldest = connection.execute(first).first()
        return Backlog(
            waiting=by_state.get(RequestState.WAITING, 0),
            deferred=by_state.get(RequestState.DEFERRED, 0),
            working=by_state.get(RequestState.WORKING, 0),
            oldest=_trigger_of(oldest).at if oldest else None,
        )

    def check(self) -> None:
        """Implement `RequestQueue.check`."""
        self._database.check(REQUESTS)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


def _values_of(request: NewRequest) -> dict[str, Any]:
    trigger = request.trigger
    return {
        "id": request.id,
        "kind": request.kind.value,
        "repository": trigger.repository.lower(),
        "number": trigger.number,
        "subject": trigger.subject,
        "key": trigger.key,
        "trigger": trigger.model_dump_json(),
        "login": request.login,
        "state": RequestState.WAITING.value,
    }


def _trigger_of(row: Any) -> Trigger:
    return Trigger.model_validate_json(row.trigger)


def _request_of_row(row: Any, claim: int) -> QueuedRequest:
    kind = RequestKind(row.kind)
    return QueuedRequest(row.id, kind, _trigger_of(row), row.login, row.position, claim)


def _read_rows(connection: Connection, positions: list[int]) -> list[Any]:
    table = REQUESTS.c
    query = select(REQUESTS).where(table.position.in_(positions)).order_by(table.position)
    return list(connection.execute(query).all()) if positions else []


def _startable_query(kind: RequestKind, now: datetime) -> Any:
    """Return a query that selects a row if anything can be claimed or returned to the queue."""
    table = REQUESTS.c
    waiting = select(table.position).where(table.state == RequestState.WAITING, table.kind == kind)
    due = select(table.position).where(
        table.state == RequestState.DEFERRED, table.not_before <= now.timestamp()
    )
    subqueries = (query.limit(1).subquery() for query in (waiting, due))
    return union_all(*(select(query.c.position) for query in subqueries))


def _update_of_claim(id: str, claim: int) -> Any:
    """Return an update of the request that has an effect only while that claim is valid.

    The claim number fences off older workflows: one that DBOS recovers after a crash holds a number
    that `claim` has since replaced, so its updates change nothing.
    """
    table = REQUESTS.c
    return update(REQUESTS).where(
        table.id == id, table.claim == claim, table.state == RequestState.WORKING
    )


def _until_isolated(rows: list[Any], are_others_active: bool) -> list[Any]:
    """Return the first rows, up to one that must be executed alone. That one waits until no other
    run is active."""
    chosen: list[Any] = []
    for row in rows:
        if row.crashes >= ISOLATED_AFTER:
            return chosen if chosen or are_others_active else [row]
        chosen.append(row)
    return chosen


def _after_crash(row: Any, progress: int, was_alone: bool, now: datetime) -> dict[str, Any]:
    """Return the new column values for a run that was active when the server crashed."""
    if progress > row.progress:
        return {"progress": progress, "crashes": 0}
    crashes = row.crashes + (1 if was_alone or row.crashes < ISOLATED_AFTER else 0)
    if crashes < ISOLATED_AFTER:
        return {"crashes": crashes}
    delay = FIRST_WAIT_AFTER_CRASH * 2 ** (crashes - ISOLATED_AFTER)
    return {
        "crashes": crashes,
        "state": RequestState.DEFERRED,
        "not_before": (now + delay).timestamp(),
    }


def _lock_table(connection: Connection) -> None:
    """Prevent other claims until the transaction ends. SQLite's write transactions do that by
    themselves.

    SHARE ROW EXCLUSIVE conflicts with itself but not with readers, see
    https://www.postgresql.org/docs/current/explicit-locking.html
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"LOCK TABLE {REQUESTS.name} IN SHARE ROW EXCLUSIVE MODE"))
