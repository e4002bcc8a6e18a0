"""The queue of requests: workflows of DBOS, in SQLite or PostgreSQL.

The id of a workflow is that of its request, so that a repeated delivery has no effect. A repository
is a partition of the queue, of which DBOS executes one workflow at a time.

A request is repeated later if an outage of GitHub or of the model's provider interrupted it. An
outage is an error that passes without anybody changing anything: a server that is down, or a rate
limit (`OUTAGES` in `resolver.models.known_failures`). Any other error, such as a rejected token or
a change that violates the policy, would occur again, so it ends the request and is reported in the
conversation.

Source: https://docs.dbos.dev/python/tutorials/queue-tutorial
"""

import logging
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import dbos
from pydantic import ValidationError
from sqlalchemy import (
    URL,
    Column,
    Index,
    Integer,
    String,
    Table,
    Text,
    column,
    delete,
    func,
    insert,
    select,
    table,
)
from sqlalchemy.exc import SQLAlchemyError

from resolver.errors import UsageError
from resolver.models.run import Command, Trigger, TriggerKind
from resolver.runs.common import run_id
from resolver.storage.database import (
    TABLES,
    DatabaseError,
    ServerDatabase,
    first_line,
    open_database,
)

logger = logging.getLogger("resolver.entrypoints.webhook")

APPLICATION: Final = "resolver"
RUNS_QUEUE: Final = "runs"
COMMANDS_QUEUE: Final = "commands"

MAX_LISTED = 100
"""Maximum number of requests that a query returns, which bounds its cost."""

MAX_REMOVED = 10_000
"""Maximum number of old requests that a process removes in a day."""

PROGRAM_DISPATCH = "repository_dispatch:"
"""Beginning of the keys of requests by the API, which a schedule or another program sends."""

POLL_SECONDS = 0.25
"""Interval at which each process looks for requests that can start."""

MAX_PARALLEL_COMMANDS = 4
"""Maximum number of commands that a process executes at a time."""

POOL_SIZE = 10
"""Maximum number of connections for deliveries; others wait."""

COMMANDS = Table(
    "resolver_commands",
    TABLES,
    Column("position", Integer, primary_key=True),
    Column("request", String(400), nullable=False),
    Column("trigger", Text, nullable=False),
    Index("resolver_commands_request", "request"),
)
"""Commands for runs that wait or are active. request: id of the first attempt of the run. A row is
removed when its run takes it; that of a stop when the request is over. (A message of DBOS would not
do: only the workflow itself can receive one, and it receives it again when it is recovered, so that
an approval would apply to another action.)"""


class RequestKind(StrEnum):
    """The kind of a request, which is the name of its workflow.

    RUN starts work. COMMAND is a comment for an active run and does not wait behind it.
    """

    RUN = "run"
    COMMAND = "command"


class RequestState(StrEnum):
    """The state of a request.

    WAITING can be started. DEFERRED can be started from a given time on. WORKING is executed by a
    process. DONE has ended with any result; it is kept so that a redelivery finds it.
    """

    WAITING = "waiting"
    DEFERRED = "deferred"
    WORKING = "working"
    DONE = "done"


OPEN_STATES = (RequestState.WAITING, RequestState.DEFERRED, RequestState.WORKING)
"""The states of a request that is not done."""

_STATES = {
    "ENQUEUED": RequestState.WAITING,
    "DELAYED": RequestState.DEFERRED,
    "PENDING": RequestState.WORKING,
}


_ATTEMPT = re.compile(r"~\d+$")
"""End of the name of an attempt after an outage."""


def is_automatic(trigger: Trigger) -> bool:
    """Return True if a failed check, a bot or a program asked, so that nobody waits."""
    is_by_program = trigger.actor.is_bot or trigger.key.startswith(PROGRAM_DISPATCH)
    return trigger.kind is TriggerKind.CHECK_FAILED or is_by_program


@dataclass(frozen=True)
class QueuedRequest:
    """A request of the queue. The defaults are those of one that is not stored yet.

    name: the same for every delivery of one request.
    outages: how often the request was deferred because of an outage.
    outage_began: time of the first of these outages.
    attempts: how often its work has started. started_at: of the newest attempt, in milliseconds
        since 1970 by the clock of the database.
    executor: id of the process that executes it.
    """

    name: str
    kind: RequestKind
    trigger: Trigger
    outages: int = 0
    outage_began: datetime | None = None
    state: RequestState = RequestState.WAITING
    attempts: int = 0
    started_at: int = 0
    not_before: datetime | None = None
    finished_at: datetime | None = None
    executor: str | None = None

    @property
    def id(self) -> str:
        """The id of the request, which begins with its conversation."""
        return f"{self.conversation}/{self.name}"

    @property
    def conversation(self) -> str:
        """OWNER/NAME#NUMBER of its conversation, in lower case, without a number if it has none."""
        return _conversation(self.trigger.repository, self.trigger.subject)

    @property
    def run(self) -> str | None:
        """The id of its run; None for a command."""
        is_run = self.kind is RequestKind.RUN
        return run_id(self.trigger.key, self.trigger.at) if is_run else None

    @property
    def recoveries(self) -> int:
        """How often the request was continued after the end of its process."""
        return self.attempts - self.outages - 1

    def next_attempt(self, now: datetime) -> "QueuedRequest":
        """Return the request that repeats this one after an outage."""
        outages, began = self.outages + 1, self.outage_began or now
        name = f"{_ATTEMPT.sub('', self.name)}~{outages}"
        return QueuedRequest(name, self.kind, self.trigger, outages, began)

    @property
    def first_id(self) -> str:
        """The id of the first attempt."""
        return _ATTEMPT.sub("", self.id)


@dataclass(frozen=True)
class Backlog:
    """What is in the queue.

    waiting, deferred, working: number of requests in these states.
    oldest: when the first waiting request was stored; None if none waits.
    """

    waiting: int = 0
    deferred: int = 0
    working: int = 0
    oldest: datetime | None = None

    def age(self, now: datetime) -> float:
        """Return for how many seconds the oldest request waits; 0 if none does."""
        return max(0.0, (now - self.oldest).total_seconds()) if self.oldest else 0.0


class RequestQueue:
    """The requests of all processes on a database. Thread-safe.

    The tables of DBOS are created if they do not exist. Methods raise DatabaseError if the database
    can't be used; the constructor raises UsageError.
    """

    def __init__(self, database: URL | ServerDatabase) -> None:
        self._database = open_database(database)
        url = self._database.url.render_as_string(hide_password=False)
        silence_dbos()
        with starting_dbos():
            dbos.DBOS.migrate(url)
            self._client = dbos.DBOSClient(
                system_database_url=url,
                application_name=APPLICATION,
                system_database_pool_size=POOL_SIZE,
                retry_connection_errors=False,
            )

    def configure(self, concurrency: int) -> None:
        """Set how many runs each process executes at a time; all have the newest setting."""
        options: dict[str, Any] = {
            "polling_interval_sec": POLL_SECONDS,
            "on_conflict": "always_update",
        }
        with self._translating_errors():
            self._client.register_queue(
                RUNS_QUEUE, worker_concurrency=concurrency, partition_concurrency=1, **options
            )
            self._client.register_queue(
                COMMANDS_QUEUE, worker_concurrency=MAX_PARALLEL_COMMANDS, **options
            )

    def add(self, request: QueuedRequest, delay: timedelta = timedelta(0)) -> bool:
        """Store the request, durably when this returns. Return False if its id is known."""
        is_run = request.kind is RequestKind.RUN
        options: dbos.EnqueueOptions = {
            "workflow_name": request.kind.value,
            "queue_name": RUNS_QUEUE if is_run else COMMANDS_QUEUE,
            "workflow_id": request.id,
            "workflow_id_reuse_policy": "reject",
            "serialization_type": dbos.WorkflowSerializationFormat.PORTABLE,
        }
        if is_run:
            options["queue_partition_key"] = request.trigger.repository.lower()
            options["priority"] = 2 if is_automatic(request.trigger) else 1  # the lowest first
        if delay:
            options["delay_seconds"] = delay.total_seconds()
        began = request.outage_began.timestamp() if request.outage_began else 0.0
        text = request.trigger.model_dump_json()
        try:
            with self._translating_errors():
                self._client.enqueue(options, text, request.outages, began)
        except dbos.error.DBOSWorkflowIDInUseError:
            return False
        return True

    def get(self, id: str) -> QueuedRequest | None:
        """Return a request; None if there is none with this id."""
        return next(iter(self._list(workflow_ids=[id])), None)

    def recent(
        self,
        states: Collection[RequestState] = (),
        repository: str | None = None,
        limit: int = MAX_LISTED,
    ) -> Sequence[QueuedRequest]:
        """Return the newest requests, the newest first. states: empty for all."""
        prefix = f"{repository.lower()}#" if repository else None
        status = [name for name in _ALL_STATUSES if not states or _state_of(name) in states]
        return self._list(status=status, workflow_id_prefix=prefix, limit=limit, sort_desc=True)

    def unfinished_runs(self, repository: str, subject: int | None) -> Sequence[QueuedRequest]:
        """Return the waiting and active runs of one issue or pull request."""
        return self._list(
            status=list(_STATES),
            name=RequestKind.RUN.value,
            workflow_id_prefix=f"{_conversation(repository, subject)}/",
            limit=MAX_LISTED,
        )

    def unfinished(self) -> Sequence[QueuedRequest]:
        """Return the requests that have not ended."""
        return self._list(status=list(_STATES))

    def active(self) -> Sequence[QueuedRequest]:
        """Return the requests that any process executes, or was executing when it died."""
        return self._list(status="PENDING")

    def cancel(self, id: str) -> None:
        """End a request that waits or is deferred."""
        with self._translating_errors():
            self._client.cancel_workflow(id)

    def start_now(self, id: str) -> None:
        """Let a deferred request start."""
        with self._translating_errors():
            self._client.set_workflow_delay(id, delay_seconds=0.0)

    def leave_command(self, runs: Collection[QueuedRequest], command: Trigger) -> None:
        """Leave a command for these runs, which take it wherever they are executed."""
        text = command.model_copy(update={"snapshot": None}).model_dump_json()
        rows = [{"request": run.first_id, "trigger": text} for run in runs]
        if rows:
            with self._database.writing() as connection:
                connection.execute(insert(COMMANDS), rows)

    def requests_with_late_commands(self) -> list[str]:
        """Return the first ids of the requests that are over, with commands that nobody took."""
        with self._database.reading() as connection:
            ids = list(connection.scalars(select(COMMANDS.c.request).distinct()))
        return [id for id in ids if not self._is_unfinished(id)]

    def _is_unfinished(self, first_id: str) -> bool:
        attempts = self._list(status=list(_STATES), workflow_id_prefix=first_id)
        return any(request.first_id == first_id for request in attempts)

    def take_commands(self, first_id: str, is_over: bool = False) -> list[Trigger]:
        """Return the commands for a run, and remove them. A stop is returned again and again until
        the request `is_over`, because the process that has taken it may die before its run ends."""
        found, removed = list[Trigger](), list[int]()
        query = select(COMMANDS).where(COMMANDS.c.request == first_id)
        with self._database.writing() as connection:
            # Locked, so that no other thread takes the same commands.
            rows = connection.execute(query.order_by(COMMANDS.c.position).with_for_update())
            for row in rows.all():
                try:
                    found.append(Trigger.model_validate_json(row.trigger))
                except ValidationError:
                    logger.error("a command for %s can't be read and is set aside", row.request)
                    removed.append(row.position)
                    continue
                if is_over or found[-1].command is not Command.STOP:
                    removed.append(row.position)
            if removed:
                connection.execute(delete(COMMANDS).where(COMMANDS.c.position.in_(removed)))
        return found

    def backlog(self) -> Backlog:
        """Return what is in the queue."""
        # DBOS has no call that counts.
        is_postgresql = self._database.url.get_backend_name() == "postgresql"
        names = ("status", "created_at")
        workflows = table(
            "workflow_status", *map(column, names), schema="dbos" if is_postgresql else None
        ).c
        counts = (
            select(workflows.status, func.count(), func.min(workflows.created_at))
            .where(workflows.status.in_(_STATES))
            .group_by(workflows.status)
        )
        with self._database.reading() as connection:
            rows = {_STATES[row[0]]: row for row in connection.execute(counts)}
        numbers = {state.value: row[1] for state, row in rows.items()}
        waiting = rows.get(RequestState.WAITING)
        return Backlog(**numbers, oldest=_time_of(waiting[2]) if waiting else None)

    def remove_finished(self, before: datetime) -> None:
        """Remove the requests that ended before this time, at most `MAX_REMOVED` at once."""
        with self._translating_errors():
            found = self._client.list_workflows(
                completed_before=before.isoformat(),
                limit=MAX_REMOVED,
                load_input=False,
                load_output=False,
            )
            if found:
                self._client.delete_workflows([status.workflow_id for status in found])

    def check(self) -> None:
        """Raise DatabaseError unless the queue can be used."""
        self._database.check(COMMANDS)

    def close(self) -> None:
        """Close all connections."""
        self._client.destroy()
        self._database.close()

    def _list(self, **conditions: Any) -> list[QueuedRequest]:
        """Return the requests that can be read."""
        with self._translating_errors():
            found = self._client.list_workflows(load_output=False, **conditions)
        return [request for status in found if (request := _stored(status)) is not None]

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        try:
            with self._database.translating_errors():
                yield
        except dbos.error.DBOSWorkflowIDInUseError:
            raise
        except dbos.error.DBOSException as error:
            raise DatabaseError(str(error) or type(error).__name__) from error


_ALL_STATUSES = (*_STATES, "SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")


@contextmanager
def starting_dbos() -> Iterator[None]:
    """Turn errors of the start into UsageError."""
    try:
        yield
    except (SQLAlchemyError, dbos.error.DBOSException, OSError) as error:
        raise UsageError(
            f"the database can't be used: {first_line(error)}",
            "check RESOLVER_DATABASE_URL, and that the database runs",
        ) from error
    except DatabaseError as error:
        raise UsageError(error.what, error.next_step) from error


def silence_dbos() -> None:
    """Keep DBOS from writing to the log itself: it logs statements with their values, and each
    attempt of each thread while the database is gone. Resolver reports what it raises."""
    log = logging.getLogger("dbos")
    log.addHandler(logging.NullHandler())  # else DBOS adds its own
    log.setLevel(logging.CRITICAL)


def _conversation(repository: str, subject: int | None) -> str:
    return f"{repository.lower()}#{'' if subject is None else subject}"


def _state_of(status: str) -> RequestState:
    return _STATES.get(status, RequestState.DONE)


def _time_of(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None


def _stored(status: dbos.WorkflowStatus) -> QueuedRequest | None:
    state = _state_of(status.status)
    is_deferred = state is RequestState.DEFERRED
    try:
        text, outages, began = status.input["args"] if status.input else ()
        return QueuedRequest(
            name=status.workflow_id.rpartition("/")[2],
            kind=RequestKind(status.name),
            trigger=Trigger.model_validate_json(text),
            outages=int(outages),
            outage_began=datetime.fromtimestamp(began, UTC) if began else None,
            state=state,
            attempts=int(outages) + (status.recovery_attempts or 0),
            started_at=status.dequeued_at or 0,
            not_before=_time_of(status.delay_until_epoch_ms) if is_deferred else None,
            finished_at=_time_of(status.completed_at),
            executor=status.executor_id,
        )
    except (ValueError, KeyError, TypeError):
        logger.error("request %s can't be read and is set aside", status.workflow_id)
        return None


FIRST_RETRY_WAIT = timedelta(seconds=30)
"""Delay before the first retry; each further delay is twice as long, up to MAX_RETRY_WAIT."""

MAX_RETRY_WAIT = timedelta(minutes=30)


def retry_end(request: QueuedRequest, retry: timedelta, now: datetime) -> datetime:
    """Return the time after which the request is not repeated any more, even if the outage
    continues."""
    return (request.outage_began or now) + retry


def next_retry_wait(request: QueuedRequest, retry: timedelta, now: datetime) -> timedelta | None:
    """Return the delay until the next attempt; None if the time for retries has passed."""
    if now >= retry_end(request, retry, now):
        return None
    return min(FIRST_RETRY_WAIT * (1 << min(request.outages, 20)), MAX_RETRY_WAIT)
