"""Executes the requests of the queue in this process, with DBOS.

Whatever happens to a process, its lease decides: when it has ended, any other process returns its
workflows to the queue. Their runs are continued from their logs.

Source: https://docs.dbos.dev/python/reference/contexts
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import dbos
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from resolver.entrypoints.webhook.commands import CommentCommands
from resolver.entrypoints.webhook.executors import LeasedExecutor
from resolver.entrypoints.webhook.request_queue import (
    APPLICATION,
    QueuedRequest,
    RequestKind,
    RequestQueue,
    next_retry_wait,
    silence_dbos,
    starting_dbos,
)
from resolver.entrypoints.webhook.request_runner import RequestRunner
from resolver.entrypoints.webhook.run_commands import RunCommands
from resolver.errors import ResolverError
from resolver.events.stream import Clock, utc_now
from resolver.models.known_failures import OUTAGES
from resolver.models.run import Command, Trigger, TriggerKind
from resolver.runs.conversation.watch import STARTING_COMMANDS, request_of_late_command
from resolver.storage.database import DatabaseError, first_line

_Stored = TypeVar("_Stored")

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_RECOVERIES = 8
"""How often a run is continued after the end of its process, before it is given up: it may be the
reason."""

LOOK_SECONDS = 1.0
"""Interval at which a process looks for commands for its active runs."""

RETRY_SECONDS = 5.0
"""Delay before a database that could not be used is tried again."""

MAX_PARALLEL_REACTIONS = 8


class RequestIntake:
    """Stores the requests of deliveries. Thread-safe.

    acknowledge: reacts to the request of a run, so that people see at once that it was received.
    Must be idempotent and never raise.
    """

    def __init__(self, queue: RequestQueue, acknowledge: Callable[[Trigger], None]) -> None:
        self._queue, self._acknowledge = queue, acknowledge
        self._reactions = ThreadPoolExecutor(MAX_PARALLEL_REACTIONS, "acknowledge")

    def enqueue(self, delivery: str, trigger: Trigger) -> None:
        """Store the delivery durably. A delivery id that is known has no effect, and neither has
        another event of the same request, such as a second comment of one review. Raises
        DatabaseError."""
        kind = RequestKind.RUN if trigger.command in STARTING_COMMANDS else RequestKind.COMMAND
        is_new = self._queue.add(QueuedRequest(_name_of(trigger) or delivery, kind, trigger))
        if is_new and kind is RequestKind.RUN:
            self._reactions.submit(self._acknowledge, trigger)


class Worker:
    """Owns the DBOS instance of the process.

    url: as returned by `database.parse_database_url`. executor: this process, registered.
    runs, commands: execute the requests. concurrency: maximum number of runs at the same time in
    each process of the database.
    """

    def __init__(
        self,
        url: URL,
        queue: RequestQueue,
        runs: RequestRunner,
        commands: CommentCommands,
        executor: LeasedExecutor,
        concurrency: int = 2,
        now: Clock = utc_now,
    ) -> None:
        self._queue, self._runs, self._commands, self._now = queue, runs, commands, now
        self._executor, self._concurrency = executor, concurrency
        self._active_runs: dict[str, RunCommands] = {}
        self._is_drained = threading.Event()
        silence_dbos()
        config: dbos.DBOSConfig = {
            "name": APPLICATION,
            "system_database_url": url.render_as_string(hide_password=False),
            "executor_id": executor.id,
            # Any version continues the runs of any other one.
            "application_version": APPLICATION,
            "log_level": "CRITICAL",
        }
        self._dbos = dbos.DBOS(config=config)
        for kind in RequestKind:
            self._define_workflow(kind)

    def _define_workflow(self, kind: RequestKind) -> None:
        # The serialized request is the argument of the workflow. It is read from the queue.
        @dbos.DBOS.workflow(
            name=kind.value,
            # A run is given up before, unless the end of its process keeps even that from being
            # reported.
            max_recovery_attempts=2 * MAX_RECOVERIES,
            serialization_type=dbos.WorkflowSerializationFormat.PORTABLE,
        )
        def workflow(trigger: str, outages: int, outage_began: float) -> None:  # noqa: ARG001
            assert dbos.DBOS.workflow_id is not None
            self._execute(dbos.DBOS.workflow_id)

    def start(self) -> None:
        """Start to execute the waiting requests and new ones, and those of dead processes.

        Raises UsageError if the database can't be used.
        """
        with starting_dbos():
            self._queue.configure(self._concurrency)
            dbos.DBOS.launch()
            self._recover()

    def drain(self) -> None:
        """Return all requests of this process to the queue, since it ends. It writes nothing more
        afterwards. Raises DatabaseError; other processes then continue them when its lease has
        ended.
        """
        for event in self._dbos.background_thread_stop_events:
            event.set()  # starts nothing more
        self._is_drained.set()
        self._executor.end()
        self._return_to_queue([self._executor.id])
        self._executor.remove()

    def look_forever(self) -> None:
        """Look after active runs and dead processes until this one ends. Raises DatabaseError."""
        recovered_at = time.monotonic()
        while not self._is_drained.wait(LOOK_SECONDS):
            for commands in list(self._active_runs.values()):
                commands.pass_on()
            if time.monotonic() - recovered_at >= self._executor.heartbeat_seconds:
                self._recover()
                self._take_late_commands()
                recovered_at = time.monotonic()

    def _recover(self) -> None:
        """Return the requests of dead processes to the queue."""
        if not self._executor.is_valid:
            return
        executors = {request.executor for request in self._queue.active() if request.executor}
        dead = self._executor.find_dead(executors)
        if dead:
            logger.info("the requests of %d dead processes go on", len(dead))
            self._return_to_queue(sorted(dead))

    def _take_late_commands(self) -> None:
        """Take what was left for a request as it ended, or was cancelled."""
        for id in self._queue.requests_with_late_commands():
            self._continue_later(self._queue.take_commands(id, is_over=True))

    def _return_to_queue(self, executors: list[str]) -> None:
        try:
            dbos.DBOS._recover_pending_workflows(executors)
        except (SQLAlchemyError, dbos.error.DBOSException) as error:
            raise DatabaseError(first_line(error)) from error

    def _execute(self, id: str) -> None:
        """Execute a request of this process."""
        request = _persist(partial(self._queue.get, id))
        if not self._executor.is_valid:
            _wait_for_end()
        if request is None or request.executor != self._executor.id:
            return  # another process executes it, and DBOS ignores what this one returns
        commands = RunCommands(partial(self._queue.take_commands, request.first_id))
        if request.kind is RequestKind.RUN:
            self._active_runs[id] = commands
        try:
            is_over = self._execute_until_stored(request, commands)
        finally:
            self._active_runs.pop(id, None)
            if not self._executor.is_valid:
                _wait_for_end()
        unread = commands.end()
        if is_over:
            late = _persist(partial(self._queue.take_commands, request.first_id, is_over=True))
            self._continue_later([*unread, *late])
        for command in () if is_over else unread:
            if command.command is not Command.STOP:  # which was not removed
                _persist(partial(self._queue.leave_command, [request], command))

    def _execute_until_stored(self, request: QueuedRequest, commands: RunCommands) -> bool:
        """Execute the request, again and again while the database can't be used. Return False if
        it is repeated later."""
        # Computed before the work: the run announces a retry in its comment by the same rule and
        # the same time, so both always agree.
        wait = next_retry_wait(request, self._runs.outage_retry, self._now())
        failure = None
        if request.recoveries > MAX_RECOVERIES:
            failure = f"the server crashed {request.recoveries} times during this run"
        while True:
            try:
                self._work(request, failure, commands)
                return True
            except DatabaseError as error:
                logger.error("%s waits for the database: %s", request.id, error.what)
            except ResolverError as error:
                # An outage passes without anybody acting on it, so the request is repeated. Every
                # other error would fail again and is final.
                if error.cause in OUTAGES and wait is not None:
                    logger.warning("%s will be retried in %s: %s", request.id, wait, error.what)
                    _persist(partial(self._queue.add, request.next_attempt(self._now()), wait))
                    return False
                if self._executor.is_valid:
                    logger.error("giving up on %s: %s", request.id, error.what)
                return True
            except Exception as error:
                logger.exception("%s failed", request.id)
                if failure or request.kind is RequestKind.COMMAND:
                    return True
                # Executed again as a run that has failed, it says so in its conversation.
                failure = f"an internal error of Resolver ({type(error).__name__})"
                continue
            time.sleep(RETRY_SECONDS)
            if not self._executor.is_valid:
                return True

    def _work(self, request: QueuedRequest, failure: str | None, commands: RunCommands) -> None:
        if request.kind is RequestKind.RUN:
            self._runs.execute(request, failure, commands)
        elif (run := self._commands.execute(request.trigger)) is not None:
            new_request = QueuedRequest(f"{request.name}.0", RequestKind.RUN, run)
            _persist(partial(self._queue.add, new_request))

    def _continue_later(self, commands: Sequence[Trigger]) -> None:
        """Store the commands that came too late for their run and ask for more work."""
        for command in commands:
            if (request := request_of_late_command(command)) is not None:
                key = hashlib.sha256(command.key.encode()).hexdigest()[:12]
                new_request = QueuedRequest(f"late-{key}", RequestKind.RUN, request)
                _persist(partial(self._queue.add, new_request))


def _wait_for_end() -> None:
    """Let this thread do nothing more, until the process ends: it may not even record that its
    request ended here, because that goes on."""
    threading.Event().wait()


def _persist(change: Callable[[], _Stored]) -> _Stored:
    """Apply the change, with retries for as long as the database is unavailable: nothing else
    would record it."""
    while True:
        try:
            return change()
        except DatabaseError as error:
            logger.error("the state of a request can't be stored for now: %s", error.what)
            time.sleep(RETRY_SECONDS)


def _name_of(trigger: Trigger) -> str | None:
    """Return one name for all events of a submitted review, or of the checks of one commit; None
    for requests that consist of one event.

    A person who wants such a request executed again has to ask again.
    """
    if trigger.review_id is None and trigger.kind is not TriggerKind.CHECK_FAILED:
        return None
    identity = f"{trigger.repository.lower()} {trigger.key}"
    return f"request-{hashlib.sha256(identity.encode()).hexdigest()[:40]}"
