"""Reads and changes the server's database for `resolver admin`.

Everything is a transaction of its own, so that it can be done while servers and workers run.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import update

from resolver.entrypoints.webhook.executors import EXECUTORS
from resolver.entrypoints.webhook.request_queue import (
    OPEN_STATES,
    NewRequest,
    QueuedRequest,
    RequestKind,
    RequestQueue,
    RequestState,
)
from resolver.errors import UsageError
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.storage.database import ServerDatabase
from resolver.storage.run_store import is_run_id

OPERATOR = "the operator of the server"
"""Stands for a login where an operator stops a run. No account of GitHub has spaces in its name."""


@dataclass(frozen=True)
class ListedRequest:
    """A request in the queue, as `resolver admin runs` shows it.

    run: id of its run; "" for a command. not_before: earliest time of a deferred request.
    finished_at: None until it is done.
    """

    id: str
    run: str
    kind: str
    state: str
    repository: str
    number: int | None
    attempts: int
    outages: int
    not_before: datetime | None
    finished_at: datetime | None


class ServerAdministration:
    """Reads and changes the queue. Methods raise DatabaseError."""

    def __init__(self, database: ServerDatabase) -> None:
        self._database, self._queue = database, RequestQueue(database)

    def requests(
        self, state: str = "", repository: str = "", limit: int = 50
    ) -> list[ListedRequest]:
        """Return the newest requests, the newest first. state: "" for all, "open" for those that
        are not done."""
        states = OPEN_STATES if state == "open" else (RequestState(state),) if state else ()
        return [_listed(request) for request in self._queue.recent(states, repository, limit)]

    def requeue(self, id: str) -> ListedRequest:
        """Let a deferred request be started now.

        id: of the request or of its run. Raises UsageError if there is none, or it is not deferred.
        """
        request = self._find(id)
        _require_state(request, RequestState.DEFERRED)
        self._queue.start_now(request.id)
        return _listed(request)

    def cancel(self, id: str, now: datetime) -> ListedRequest:
        """End a request that waits or is deferred, or stop an active run.

        The conversation of a waiting request gets no comment. For an active run, a stop is stored
        like that of a comment.
        id: of the request or of its run. Raises UsageError if there is none, or it has ended.
        """
        request = self._find(id)
        if request.state is RequestState.WORKING and request.run and request.trigger is not None:
            name = f"operator-stop-{request.new.name}-{request.started_at}"
            stop = _operator_stop(request.trigger, name, now)
            self._queue.add(NewRequest(name, RequestKind.COMMAND, stop))
        else:
            _require_state(request, RequestState.WAITING, RequestState.DEFERRED)
            self._queue.cancel(request.id)
        return _listed(request)

    def drain(self, host: str) -> int:
        """Let the processes on a machine start nothing more, and return how many there are.

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

    def _find(self, id: str) -> QueuedRequest:
        """Return a request by its id or that of its run. Raises UsageError."""
        request = self._queue.get(id)
        if request is None and is_run_id(id):
            unfinished = self._queue.unfinished()
            request = next((request for request in unfinished if request.run == id), None)
        if request is None:
            raise UsageError(
                f"no open request has the id {id!r}", "see `resolver admin runs` for the ids"
            )
        return request

    def close(self) -> None:
        """Close the connections of the queue."""
        self._queue.close()


_NEXT_STEPS = {
    RequestState.WAITING: "it starts as soon as there is room; nothing is to be done",
    RequestState.DEFERRED: "see `resolver admin runs --state deferred`",
    RequestState.WORKING: "wait until it has ended",
    RequestState.DONE: "ask again in the conversation",
}


def _require_state(request: QueuedRequest, *allowed: RequestState) -> None:
    if request.state not in allowed:
        raise UsageError(
            f"{request.id} is {request.state}, not {' or '.join(allowed)}",
            _NEXT_STEPS[request.state],
        )


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


def _listed(request: QueuedRequest) -> ListedRequest:
    trigger = request.trigger
    return ListedRequest(
        id=request.id,
        run=request.run,
        kind=request.kind,
        state=request.state.value,
        repository=request.conversation.rpartition("#")[0],
        number=trigger.number if trigger else None,
        attempts=request.attempts,
        outages=request.outages,
        not_before=request.not_before,
        finished_at=request.finished_at,
    )
