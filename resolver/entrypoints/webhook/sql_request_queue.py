"""The queue of requests in SQLite or PostgreSQL: one table, with an index for each query."""

import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    case,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
    union_all,
    update,
)

from resolver.entrypoints.webhook.executors import (
    EXECUTORS,
    has_dead_executors,
    may_claim,
    remove_dead_executors,
    remove_executor,
)
from resolver.entrypoints.webhook.request_queue import (
    MAX_LISTED,
    MAX_RETRY_WAIT,
    OPEN_STATES,
    Backlog,
    MeasureProgress,
    NewRequest,
    QueuedRequest,
    RequestKind,
    RequestState,
    StartedRequest,
)
from resolver.entrypoints.webhook.request_table import (
    ALL_REPOSITORIES,
    FIRST_OF_EACH_REPOSITORY,
    FIRST_WITHIN_LIMITS,
    REQUESTS,
    row_of_request,
)
from resolver.models.run import Trigger
from resolver.storage.database import ServerDatabase
from resolver.storage.schema import CLAIM_LOCK, lock_others_out


class SqlRequestQueue:
    """A durable queue: a table. Thread-safe.

    Every method raises DatabaseError if the database can't be used. The cost of a call does not
    depend on how many requests wait.

    url: as returned by `database.parse_database_url`. executor: id of the registered executor that
    claims requests; "" if there is only one, which is not registered. active_limit: maximum number
    of active runs of one account, by all executors together; 0 for none. Raises UsageError if the
    database can't be used.
    """

    def __init__(self, url: URL, executor: str = "", active_limit: int = 0) -> None:
        self._executor, self._active_limit = executor, active_limit
        self._database = ServerDatabase(url)
        insertion = self._database.insert(REQUESTS).on_conflict_do_nothing(index_elements=["id"])
        self._insertion = insertion.inline().execution_options(preserve_rowcount=True)

    def add(self, request: NewRequest) -> bool:
        """Store the request, durably when this returns. Return False if its id is known."""
        with self._database.writing() as connection:
            return connection.execute(self._insertion, row_of_request(request)).rowcount == 1

    def claim(self, kind: RequestKind, limit: int, now: datetime) -> list[QueuedRequest]:
        """Claim the next requests, so that at most `limit` of the kind are claimed at a time by
        this executor.

        At most one run of each repository is claimed, by all executors together, and at most the
        allowed number of one account. A command is only claimed by the executor of its repository's
        active run, if there is one.
        """
        table = REQUESTS.c
        own_claims = select(func.count()).where(
            table.state == RequestState.WORKING,
            table.kind == kind,
            table.executor == self._executor,
        )
        # without the write lock, since most polls find nothing
        with self._database.reading() as connection:
            is_full = (connection.scalar(own_claims) or 0) >= limit
            if is_full or not _can_start(connection, kind, now, self._executor):
                return []
        with self._database.writing() as connection:
            lock_others_out(connection, CLAIM_LOCK)
            if self._executor and not may_claim(connection, self._executor):
                return []
            # Deferred requests that are due keep their position, so they come before newer ones.
            connection.execute(
                update(REQUESTS)
                .where(table.state == RequestState.DEFERRED, or_(*_are_due(now)))
                .values(state=RequestState.WAITING)
            )
            free = limit - (connection.scalar(own_claims) or 0)
            if free <= 0:
                return []
            if kind is RequestKind.RUN:
                positions = _read_startable_runs(connection, free, self._active_limit)
            else:
                waiting = _waiting_query(kind, self._executor)
                positions = list(connection.scalars(waiting.order_by(table.position).limit(free)))
            rows = _lock_waiting(connection, positions)
            # The claim number is incremented, so that workflows of earlier claims can't change the
            # row any more.
            connection.execute(
                update(REQUESTS)
                .where(table.position.in_([row.position for row in rows]))
                .values(
                    state=RequestState.WORKING,
                    claim=table.claim + 1,
                    executor=self._executor,
                    begun=False,
                )
            )
            return [_request_of_row(row, row.claim + 1) for row in rows]

    def start(self, id: str, claim: int) -> StartedRequest | None:
        """Record that the work starts. Return None if the claim was revoked."""
        table = REQUESTS.c
        with self._database.writing() as connection:
            row = connection.execute(
                select(REQUESTS).where(
                    table.id == id, table.claim == claim, table.state == RequestState.WORKING
                )
            ).first()
            if row is None:
                return None
            if row.kind == RequestKind.COMMAND and _is_run_elsewhere(
                connection, row, self._executor
            ):
                released = {"state": RequestState.WAITING, "begun": False}
                connection.execute(_update_of_claim(id, claim).values(released))
                return None
            started = _update_of_claim(id, claim).values(begun=True, attempts=table.attempts + 1)
            if connection.execute(started).rowcount == 0:
                return None
            row = connection.execute(select(REQUESTS).where(table.id == id)).one()
        outage_began = datetime.fromtimestamp(row.outage_began, UTC) if row.outage_began else None
        return StartedRequest(
            _request_of_row(row, claim), row.attempts, row.crashes, row.outages, outage_began
        )

    def finish(self, id: str, claim: int) -> None:
        """Record that the request is done."""
        done = {"state": RequestState.DONE, "trigger": "", "finished_at": time.time()}
        with self._database.writing() as connection:
            connection.execute(_update_of_claim(id, claim).values(done))

    def defer(self, id: str, claim: int, until: datetime, outage: datetime | None = None) -> None:
        """Let the request wait until then, to be claimed again. outage: the current time if an
        outage is the reason."""
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

    def recover(self, stopped: bool, progress: MeasureProgress, predecessor: str = "") -> None:
        """Revoke the claims of executors that have no lease any more.

        predecessor: id of the executor that had this process's data folder before, which is dead
        even if its lease has not ended.
        stopped: True if it was asked to end. Otherwise it crashed, possibly because of a run that
        was active then.

        A crash counts against each run that was active and has made no progress since the last one.
        """
        revoked = _revocable_query(self._executor)
        with self._database.reading() as connection:
            is_needed = predecessor or has_dead_executors(connection, self._executor)
            if not is_needed and connection.execute(revoked.limit(1)).first() is None:
                return
        with self._database.writing() as connection:
            lock_others_out(connection, CLAIM_LOCK)
            dead = remove_dead_executors(connection, self._executor, predecessor)
            rows = connection.execute(revoked).all()
            for executor, claims in _group_by_executor(rows).items():
                is_known = executor in {"", predecessor} or connection.dialect.name == "sqlite"
                was_stopped = executor in dead.stopped or (stopped and is_known)
                _revoke_claims(connection, claims, None if was_stopped else progress)

    def release(self) -> None:
        """Return all requests that this executor has claimed to the queue, and remove the executor,
        because the process ends."""
        table = REQUESTS.c
        with self._database.writing() as connection:
            lock_others_out(connection, CLAIM_LOCK)
            connection.execute(
                update(REQUESTS)
                .where(table.state == RequestState.WORKING, table.executor == self._executor)
                .values(state=RequestState.WAITING, begun=False)
            )
            remove_executor(connection, self._executor)

    def unacknowledged(self, limit: int) -> list[QueuedRequest]:
        """Return the first waiting runs whose requests have got no reaction yet."""
        table = REQUESTS.c
        query = (
            select(REQUESTS)
            .where(table.state == RequestState.WAITING, table.kind == RequestKind.RUN)
            .where(table.acknowledged.is_(False))
            .order_by(table.position)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [_request_of_row(row, row.claim) for row in connection.execute(query).all()]

    def mark_acknowledged(self, requests: Collection[QueuedRequest]) -> None:
        """Record that the requests have got a reaction or need none."""
        positions = [request.position for request in requests]
        with self._database.writing() as connection:
            connection.execute(
                update(REQUESTS).where(REQUESTS.c.position.in_(positions)).values(acknowledged=True)
            )

    def unfinished_runs(self, repository: str, subject: int | None) -> list[Trigger]:
        """Return the triggers of the waiting and active runs of one issue or pull request."""
        table = REQUESTS.c
        query = (
            select(REQUESTS)
            .where(table.repository == repository.lower(), table.subject == subject)
            .where(table.state.in_(OPEN_STATES), table.kind == RequestKind.RUN)
            .order_by(table.position)
            .limit(MAX_LISTED)
        )
        with self._database.reading() as connection:
            return [_trigger_of(row) for row in connection.execute(query).all()]

    def repositories(self) -> list[str]:
        """Return the repositories that have requests, in lower case; at most MAX_LISTED."""
        with self._database.reading() as connection:
            return list(connection.scalars(ALL_REPOSITORIES, {"limit": MAX_LISTED}))

    def backlog(self) -> Backlog:
        """Return what is in the queue. For probes: this is the one method whose cost grows with the
        number of waiting requests, by reading an index."""
        with self._database.reading() as connection:
            return _read_backlog(connection)

    def check(self) -> None:
        """Raise DatabaseError unless the queue can be used."""
        self._database.check(REQUESTS)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


def _read_startable_runs(connection: Connection, limit: int, active_limit: int) -> list[int]:
    """Return the positions of the runs that can start."""
    if not active_limit:
        return list(connection.scalars(FIRST_OF_EACH_REPOSITORY, {"limit": limit}))
    values = {"limit": limit, "active_limit": active_limit}
    return list(connection.scalars(FIRST_WITHIN_LIMITS, values))


def _read_backlog(connection: Connection) -> Backlog:
    table = REQUESTS.c
    counts = (
        select(table.state, func.count()).where(table.state.in_(OPEN_STATES)).group_by(table.state)
    )
    first = (
        select(table.trigger)
        .where(table.state == RequestState.WAITING)
        .order_by(table.position)
        .limit(1)
    )
    by_state = {row[0]: row[1] for row in connection.execute(counts)}
    oldest = connection.execute(first).first()
    return Backlog(
        waiting=by_state.get(RequestState.WAITING, 0),
        deferred=by_state.get(RequestState.DEFERRED, 0),
        working=by_state.get(RequestState.WORKING, 0),
        oldest=_trigger_of(oldest).at if oldest else None,
    )


def _trigger_of(row: Any) -> Trigger:
    return Trigger.model_validate_json(row.trigger)


def _request_of_row(row: Any, claim: int) -> QueuedRequest:
    kind = RequestKind(row.kind)
    return QueuedRequest(row.id, kind, _trigger_of(row), row.position, claim)


def _lock_waiting(connection: Connection, positions: list[int]) -> list[Any]:
    """Return those of the rows that wait, which no other transaction changes before this one ends.

    An operator may have cancelled one since it was found.
    """
    table = REQUESTS.c
    query = select(REQUESTS).where(table.position.in_(positions)).order_by(table.position)
    rows = connection.execute(query.with_for_update()).all() if positions else []
    return [row for row in rows if row.state == RequestState.WAITING]


def _can_start(connection: Connection, kind: RequestKind, now: datetime, executor: str) -> bool:
    """Return True if anything can be claimed or returned to the queue."""
    table = REQUESTS.c
    deferred = select(table.position).where(table.state == RequestState.DEFERRED)
    queries = (_waiting_query(kind, executor), *map(deferred.where, _are_due(now)))
    subqueries = (query.limit(1).subquery() for query in queries)
    startable = union_all(*(select(query.c.position) for query in subqueries))
    return connection.execute(startable).first() is not None


def _are_due(now: datetime) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return the conditions under which a deferred request is due; one is enough.

    No request is deferred for longer than `MAX_RETRY_WAIT`. One that seems to be was deferred
    before the clock was set back, and must not wait until the clock is there again.
    """
    not_before = REQUESTS.c.not_before
    return not_before <= now.timestamp(), not_before > (now + MAX_RETRY_WAIT).timestamp()


def _waiting_query(kind: RequestKind, executor: str) -> Any:
    """Return a query of the positions of waiting requests that this executor may claim.

    Only the process that executes the run of a repository can pass a command to it, so the commands
    for that repository are left to its executor.
    """
    table = REQUESTS.c
    waiting = select(table.position).where(table.state == RequestState.WAITING, table.kind == kind)
    if kind is not RequestKind.COMMAND:
        return waiting
    return waiting.where(not_(_has_run_elsewhere(table.repository, executor)))


def _has_run_elsewhere(repository: Any, executor: str) -> Any:
    """Return the condition that another executor executes the active run of the repository."""
    active = REQUESTS.alias("active")
    return exists(
        select(active.c.position).where(
            active.c.state == RequestState.WORKING,
            active.c.kind == RequestKind.RUN,
            active.c.repository == repository,
            active.c.executor != executor,
        )
    )


def _is_run_elsewhere(connection: Connection, row: Any, executor: str) -> bool:
    """Return True if another executor executes the active run of the row's repository."""
    return bool(connection.scalar(select(_has_run_elsewhere(literal(row.repository), executor))))


def _revocable_query(executor: str) -> Any:
    """Return a query of the claims whose executor does not exist, and is not this one."""
    table = REQUESTS.c
    claimed = select(REQUESTS).where(
        table.state == RequestState.WORKING,
        table.executor.not_in(select(EXECUTORS.c.id)),
    )
    return claimed.where(table.executor != executor) if executor else claimed


def _revoke_claims(
    connection: Connection, claims: list[Any], progress: MeasureProgress | None
) -> None:
    """Return the requests that one executor had claimed to the queue. progress: None if it did not
    crash."""
    for row in claims:
        values: dict[str, Any] = {"state": RequestState.WAITING, "begun": False}
        if progress is not None and row.begun and row.kind == RequestKind.RUN:
            current = progress(_trigger_of(row))
            values |= (
                {"progress": current, "crashes": 0}
                if current > row.progress
                else {"crashes": row.crashes + 1}
            )
        connection.execute(_update_of_claim(row.id, row.claim).values(**values))


def _group_by_executor(rows: Sequence[Any]) -> dict[str, list[Any]]:
    claims: dict[str, list[Any]] = {}
    for row in rows:
        claims.setdefault(row.executor, []).append(row)
    return claims


def _update_of_claim(id: str, claim: int) -> Any:
    """Return an update of the request that has an effect only while that claim is valid.

    The claim number fences off older workflows: one that DBOS recovers after a crash holds a number
    that `claim` has since replaced, so its updates change nothing.
    """
    table = REQUESTS.c
    return update(REQUESTS).where(
        table.id == id, table.claim == claim, table.state == RequestState.WORKING
    )
