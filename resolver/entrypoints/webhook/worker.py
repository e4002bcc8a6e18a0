"""The worker of the request queue: starts requests that can start, as DBOS workflows.

A dispatcher thread claims requests for this executor and starts a DBOS workflow for each in this
process (`request_workflows.py`). Whatever happens to the process, its claims decide: when its lease
has ended, or at the next start in its data folder, they are revoked and the requests are claimed
again, by any executor. A workflow of a revoked claim does nothing.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeVar

from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from resolver.entrypoints.webhook.executors import RegisteredExecutor
from resolver.entrypoints.webhook.request_queue import (
    MeasureProgress,
    NewRequest,
    QueuedRequest,
    RequestKind,
    StartedRequest,
    next_retry_wait,
)
from resolver.entrypoints.webhook.request_workflows import RequestWorkflows
from resolver.entrypoints.webhook.sql_request_queue import SqlRequestQueue
from resolver.errors import ResolverError
from resolver.events.stream import Clock, utc_now
from resolver.models.known_failures import OUTAGES
from resolver.models.run import Trigger, TriggerKind
from resolver.runs.conversation.watch import STARTING_COMMANDS
from resolver.storage.database import DatabaseError

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_PARALLEL: Mapping[RequestKind, int] = {RequestKind.COMMAND: 4}
"""Maximum number of requests of a kind that are processed at the same time. For runs it is a
setting."""

DISPATCH_SECONDS = 1.0
"""Interval between two polls for deferred requests that are due. New requests end the wait."""

PAUSE_SECONDS = 0.1
"""Delay before new requests are claimed, so that requests that arrive together are claimed
together."""

MAX_PAUSE_SECONDS = 0.8
"""The same while requests keep arriving of which none can start, doubled up to this each time. It
leaves the database and the processor to the deliveries."""

RETRY_SECONDS = 5.0
"""Delay before a database that could not be used is tried again."""

MAX_PARALLEL_REACTIONS = 8


@dataclass(frozen=True)
class RequestResult:
    """The result of an executed request. follow_ups: runs that are to be executed after it."""

    run: str
    exit_code: int
    state: str
    follow_ups: tuple[Trigger, ...] = ()


ExecuteRun = Callable[[StartedRequest], RequestResult]
"""Executes a run and returns its result. Must be idempotent. If it raises an error with a cause in
`OUTAGES`, the request is deferred and executed again later."""

FindUnfinishedRuns = Callable[[Trigger], Collection[Trigger]]
"""Returns the triggers of runs that are waiting or active for the same issue or pull request."""

PostPauseNotices = Callable[[Collection[Trigger]], None]
"""Writes into the comments of active runs that they pause."""

Acknowledge = Callable[[Trigger], None]
"""Reacts to the request of a run that waits in the queue. Must be idempotent and never raise."""

ExecuteCommand = Callable[[Trigger, FindUnfinishedRuns], Trigger | None]
"""Executes a command and returns the trigger of the run that it asks for, if any. Errors have the
same meaning as those of `ExecuteRun`."""


_Stored = TypeVar("_Stored")


@dataclass(frozen=True)
class RequestHandlers:
    """The functions that the worker calls for its requests.

    measure_progress: measures the progress of a run whose executor died. outage_retry: how long a
    request is repeated in an outage.
    """

    execute_run: ExecuteRun
    execute_command: ExecuteCommand
    acknowledge: Acknowledge
    measure_progress: MeasureProgress
    outage_retry: timedelta = timedelta(0)


class Worker:
    """Owns the DBOS instance of the process and the dispatcher thread.

    url: as returned by `database.parse_database_url`. executor: this process, registered.
    concurrency: number of runs at the same time in this process, over all repositories; with 0 it
    claims no requests of any kind, and leaves them to other processes. now: the clock that all
    processes of the database share; it may raise DatabaseError. on_added: called for new requests.
    """

    def __init__(
        self,
        url: URL,
        queue: SqlRequestQueue,
        handlers: RequestHandlers,
        executor: RegisteredExecutor,
        concurrency: int = 2,
        now: Clock = utc_now,
        on_added: Callable[[], None] | None = None,
    ) -> None:
        self._queue, self._handlers, self._now = queue, handlers, now
        self._executor, self._fence, self._on_added = executor, executor.fence, on_added
        self._limits = {**MAX_PARALLEL, RequestKind.RUN: concurrency}
        self._active_runs: dict[str, Trigger] = {}
        self._recovered_at = time.monotonic()
        self._wake = threading.Event()
        self._acknowledging: set[int] = set()
        self._reactions = ThreadPoolExecutor(MAX_PARALLEL_REACTIONS, "acknowledge")
        # A process that executes nothing does without DBOS, its threads and its connections.
        self._workflows = (
            RequestWorkflows(url, executor.id, self._execute_claim) if concurrency else None
        )

    def start(self) -> None:
        """Start to process the waiting requests and new ones. The claims of the process that had
        this data folder before must have been revoked.

        Raises UsageError if the database can't be used.
        """
        if self._workflows is not None:
            self._workflows.launch()
        self._wake.set()
        threading.Thread(target=self._dispatch, name="dispatcher", daemon=True).start()

    def enqueue(self, delivery: str, trigger: Trigger) -> None:
        """Store the delivery durably. A delivery id that is known has no effect, and neither has
        another event of the same request, such as a second comment of one review. Raises
        DatabaseError."""
        kind = RequestKind.RUN if trigger.command in STARTING_COMMANDS else RequestKind.COMMAND
        self._add(NewRequest(_id_of_request(trigger) or delivery, kind, trigger))

    def wake(self) -> None:
        """Look for requests that can start now."""
        self._wake.set()

    def _add(self, request: NewRequest) -> None:
        self._queue.add(request)
        (self._on_added or self.wake)()

    def _dispatch(self) -> None:
        """Claim and start requests until the process ends. This is the loop of the dispatcher
        thread."""
        is_failing, pause = False, PAUSE_SECONDS
        while True:
            # Set by `enqueue` and by every request that ends, because both may make a request
            # startable. The timeout finds deferred requests that have become due.
            is_woken = self._wake.wait(DISPATCH_SECONDS)
            time.sleep(pause)
            self._wake.clear()
            try:
                self._recover_claims()
                found = self._start_claimed() + self._acknowledge_waiting()
                pause = next_pause(pause, is_woken and not found)
                is_failing = False
            except (DatabaseError, SQLAlchemyError) as error:
                if not is_failing:
                    logger.error(
                        "waiting requests can't be started for now: %s", _first_line(error)
                    )
                is_failing = True
                time.sleep(RETRY_SECONDS)

    def _recover_claims(self) -> None:
        """Revoke the claims of executors that died, from time to time."""
        is_due = time.monotonic() - self._recovered_at >= self._executor.heartbeat_seconds
        if is_due and self._fence.is_valid:
            self._queue.recover(False, self._handlers.measure_progress)
            self._recovered_at = time.monotonic()

    def _start_claimed(self) -> int:
        """Start a workflow in this process for each request that can start. Return their number."""
        if self._workflows is None:
            return 0
        now, started = self._now(), 0
        for kind, limit in self._limits.items():
            for request in self._queue.claim(kind, limit, now):
                try:
                    self._workflows.start(request.id, request.claim)
                    started += 1
                except DatabaseError:
                    _persist(partial(self._defer, request, timedelta(seconds=RETRY_SECONDS)))
                    raise
        return started

    def _acknowledge_waiting(self) -> int:
        """React to the requests of those runs that could not start at once. Return their number."""
        room = 2 * MAX_PARALLEL_REACTIONS - len(self._acknowledging)
        if room <= 0 or not self._fence.is_valid:
            return 0
        found = [
            request
            for request in self._queue.unacknowledged(2 * MAX_PARALLEL_REACTIONS)
            if request.position not in self._acknowledging
        ][:room]
        for request in found:
            self._acknowledging.add(request.position)
            self._reactions.submit(self._acknowledge, request)
        return len(found)

    def _acknowledge(self, request: QueuedRequest) -> None:
        try:
            self._handlers.acknowledge(request.trigger)
            self._queue.mark_acknowledged([request])
        except DatabaseError as error:
            logger.error("the reaction to a waiting request can't be recorded: %s", error.what)
        finally:
            self._acknowledging.discard(request.position)
            self._wake.set()

    def _execute_claim(self, id: str, claim: int) -> None:
        """Execute a claimed request, unless its claim was revoked."""
        started = _persist(partial(self._queue.start, id, claim))
        if started is None:
            return
        request = started.request
        record_end = partial(self._queue.finish, id, claim)
        # Computed before the work: the run announces a retry in its comment by the same rule and
        # the same time, so both always agree.
        wait = next_retry_wait(started, self._handlers.outage_retry, _persist(self._now))
        if request.kind is RequestKind.RUN:
            self._active_runs[id] = request.trigger
        try:
            self._execute(started)
        except ResolverError as error:
            label = f"{request.kind.value} {request.id}"
            if isinstance(error, DatabaseError):
                record_end = partial(self._defer, request, timedelta(seconds=RETRY_SECONDS))
            # An outage passes without anybody acting on it, so the request is repeated. Every other
            # error would fail again and is final.
            elif error.cause in OUTAGES and wait is not None:
                logger.warning("%s will be retried in %s: %s", label, wait, error.what)
                record_end = partial(self._defer, request, wait, True)
            elif self._fence.is_valid:
                logger.error("giving up on %s: %s", label, error.what)
        finally:
            self._active_runs.pop(id, None)
            # Without a lease the work was cut off. The request is still claimed, until the claim is
            # released or revoked.
            if self._fence.is_valid:
                _persist(record_end)
            self._wake.set()

    def drain(self, post_pause_notices: PostPauseNotices) -> None:
        """Hand all claims of this process back, since it ends. It writes nothing more afterwards.

        Arguments and errors are those of `hand_over`.
        """
        hand_over(self._executor, self._queue, list(self._active_runs.values()), post_pause_notices)

    def _execute(self, started: StartedRequest) -> None:
        request, handlers = started.request, self._handlers
        if request.kind is RequestKind.RUN:
            for number, follow_up in enumerate(handlers.execute_run(started).follow_ups):
                new_request = NewRequest(f"{request.id}.{number}", RequestKind.RUN, follow_up)
                _persist(partial(self._add, new_request))
        else:
            run = handlers.execute_command(request.trigger, partial(_unfinished, self._queue))
            if run is not None:
                self._queue.add(NewRequest(f"{request.id}.run", RequestKind.RUN, run))

    def _defer(self, request: QueuedRequest, wait: timedelta, outage: bool = False) -> None:
        """Return the request to the queue, to be claimed again after `wait`."""
        now = self._now()
        self._queue.defer(request.id, request.claim, now + wait, now if outage else None)


def next_pause(pause: float, is_in_vain: bool) -> float:
    """Return the delay before the next look for requests, after one that had this delay.

    is_in_vain: True if requests had arrived and none of them could be started or acknowledged.
    """
    return min(2 * pause, MAX_PAUSE_SECONDS) if is_in_vain else PAUSE_SECONDS


def hand_over(
    executor: RegisteredExecutor,
    queue: SqlRequestQueue,
    active: Collection[Trigger],
    post_pause_notices: PostPauseNotices,
) -> None:
    """Return the claims of an executor that was told to end to the queue.

    active: the triggers of its active runs. Raises DatabaseError; the claims are then revoked when
    the lease has ended, and as `draining` is stored first, nobody takes that for a crash.
    """
    executor.end_writes()
    executor.mark_draining()
    post_pause_notices(active)
    queue.release()


def _unfinished(queue: SqlRequestQueue, trigger: Trigger) -> Collection[Trigger]:
    return queue.unfinished_runs(trigger.repository, trigger.subject)


def _persist(change: Callable[[], _Stored]) -> _Stored:
    """Apply the change, with retries for as long as the database is unavailable: nothing else
    would record it."""
    while True:
        try:
            return change()
        except DatabaseError as error:
            logger.error("the state of a request can't be stored for now: %s", error.what)
            time.sleep(RETRY_SECONDS)


def _first_line(error: Exception) -> str:
    """Return the first line of the error's message."""
    message = error.what if isinstance(error, ResolverError) else str(error)
    return (message.strip().splitlines() or [type(error).__name__])[0]


def _id_of_request(trigger: Trigger) -> str:
    """Return one id for all events of a submitted review, or of the checks of one commit; "" for
    requests that consist of one event.

    A person who wants such a request executed again has to ask again.
    """
    if trigger.review_id is None and trigger.kind is not TriggerKind.CHECK_FAILED:
        return ""
    identity = f"{trigger.repository.lower()} {trigger.key}"
    return f"request-{hashlib.sha256(identity.encode()).hexdigest()[:40]}"
