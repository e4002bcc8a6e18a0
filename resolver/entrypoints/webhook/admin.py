"""Reads and changes the server's database for `resolver admin`.

Everything is a transaction of its own, so that it can be done while servers and workers run.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from resolver.entrypoints.webhook.executors import EXECUTORS
from resolver.entrypoints.webhook.request_queue import (
    OPEN_STATES,
    NewRequest,
    RequestKind,
    RequestState,
)
from resolver.entrypoints.webhook.request_table import REQUESTS, row_of_request, run_of_request
from resolver.errors import UsageError
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.storage.database import ServerDatabase
from resolver.storage.run_folders import is_run_id

OPERATOR = "the operator of the server"
"""Stands for a login where an operator stops a run. No account of GitHub has spaces in its name."""


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


class ServerAdministration:
    """Reads and changes the queue and the stored runs. Methods raise DatabaseError."""

    def __init__(self, database: ServerDatabase) -> None:
        self._database = database

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
        """End a request that waits or is deferred, or stop an active run.

        The conversation of a waiting request gets no comment. For an active run, a stop is stored
        like that of a comment, which the process that executes the run claims.
        id: of the request or of its run. Raises UsageError if there is none, or it has ended.
        """
        if (active := self._stop(id, now)) is not None:
            return active
        values = {"trigger": "", "finished_at": now.timestamp()}
        states = (RequestState.WAITING, RequestState.DEFERRED)
        return self._change(id, states, RequestState.DONE, values)

    def _stop(self, id: str, now: datetime) -> ListedRequest | None:
        """Store a stop for an active run, once. Return None if no run is active."""
        with self._database.writing() as connection:
            row = _find(connection, id)
            if row.state != RequestState.WORKING or row.kind != RequestKind.RUN:
                return None
            stop_id = f"operator-stop-{row.position}-{row.claim}"
            is_stored = select(REQUESTS.c.position).where(REQUESTS.c.id == stop_id)
            if connection.scalar(is_stored) is None:
                stop = _operator_stop(Trigger.model_validate_json(row.trigger), stop_id, now)
                request = NewRequest(stop_id, RequestKind.COMMAND, stop)
                connection.execute(insert(REQUESTS).values(row_of_request(request)))
        return _stored_request(row)

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

    def drain(self, host: str) -> int:
        """Let the processes on a machine claim nothing more, and return how many there are.

        Their active runs continue. host: its name; "" for all machines. Raises UsageError if there
        is none.
        """
        change = update(EXECUTORS).values(draining=True)
        if host:
            change = change.where(EXECUTORS.c.host == host)
        with self._database.writing() as connection:
            count = connection.execute(change).rowcount
        if not count:
            raise UsageError(
                f"no process that executes requests is registered{f' on {host}' if host else ''}",
                "give the name of its machine, as `hostname` prints it, or none for all",
            )
        return count


_NEXT_STEPS = {
    RequestState.WAITING: "it starts as soon as there is room; nothing is to be done",
    RequestState.DEFERRED: "see `resolver admin runs --state deferred`",
    RequestState.WORKING: "wait until it has ended",
    RequestState.DONE: "ask again in the conversation",
}


def _operator_stop(run: Trigger, request: str, now: datetime) -> Trigger:
    """Return the trigger of a stop by the operator of the server. request: identifies it."""
    return Trigger(
        key=f"operator:{request}",
        kind=TriggerKind.OPERATOR,
        repository=run.repository,
        number=run.number,
        is_pull_request=run.is_pull_request,
        issue=run.issue,
        actor=Actor(login=OPERATOR),
        command=Command.STOP,
        at=now,
    )


def _find(connection: Connection, id: str) -> Any:
    """Return the row of a request by its id or that of its run. Raises UsageError."""
    row = connection.execute(select(REQUESTS).where(REQUESTS.c.id == id)).first()
    if row is None and is_run_id(id):
        query = select(REQUESTS).where(REQUESTS.c.state.in_(OPEN_STATES))
        row = next(
            (row for row in connection.execute(query) if run_of_request(row.trigger) == id), None
        )
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
        run=run_of_request(row.trigger),
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
