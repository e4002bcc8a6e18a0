"""How often the dispatcher looks for requests, and what each kind of request does.

Which requests it starts is in test_request_queue.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from resolver.entrypoints.webhook.executors import RegisteredExecutor
from resolver.entrypoints.webhook.request_queue import (
    QueuedRequest,
    RequestKind,
    StartedRequest,
)
from resolver.entrypoints.webhook.sql_request_queue import SqlRequestQueue
from resolver.entrypoints.webhook.worker import (
    DISPATCH_SECONDS,
    MAX_PAUSE_SECONDS,
    PAUSE_SECONDS,
    FindUnfinishedRuns,
    RequestHandlers,
    RequestResult,
    Worker,
    next_pause,
)
from resolver.errors import ForgeError
from resolver.events.stream import utc_now
from resolver.models.run import Command, Trigger
from resolver.storage.database import parse_database_url
from tests.github import reports


def test_the_more_requests_arrive_in_vain_the_rarer_are_the_looks_at_them() -> None:
    pauses = [PAUSE_SECONDS]
    while len(pauses) < 6:
        pauses.append(next_pause(pauses[-1], is_in_vain=True))
    assert pauses == [0.1, 0.2, 0.4, 0.8, 0.8, 0.8]
    assert next_pause(MAX_PAUSE_SECONDS, is_in_vain=False) == PAUSE_SECONDS
    assert MAX_PAUSE_SECONDS < DISPATCH_SECONDS


@dataclass
class Requests:
    """A worker that is not started: the test claims what waits, and lets the worker execute it.

    follow_ups: what a run leaves to be executed after it. outage: ends every run.
    """

    folder: Path
    follow_ups: tuple[Trigger, ...] = ()
    outage: ForgeError | None = None
    executed: list[tuple[Trigger, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        url = parse_database_url(f"sqlite:///{self.folder}/resolver.db")
        self.executor = RegisteredExecutor(url)
        self.executor.register()
        self.queue = SqlRequestQueue(url, self.executor.id)
        handlers = RequestHandlers(
            execute_run=self.execute_run,
            execute_command=self.execute_command,
            acknowledge=self.acknowledge,
            measure_progress=lambda _: 0,
            outage_retry=timedelta(hours=1),
        )
        self.worker = Worker(url, self.queue, handlers, self.executor, concurrency=0)

    def execute_run(self, started: StartedRequest) -> RequestResult:
        self.executed.append((started.request.trigger, started.attempt))
        if self.outage is not None:
            raise self.outage
        return RequestResult("run", 0, "finished", self.follow_ups)

    def execute_command(
        self, trigger: Trigger, find_unfinished: FindUnfinishedRuns
    ) -> Trigger | None:
        """Let every command but a stop become a run."""
        return None if trigger.command is Command.STOP else trigger

    def acknowledge(self, trigger: Trigger) -> None: ...

    def claim(self, kind: RequestKind, minutes: float = 0) -> list[QueuedRequest]:
        """Return what can start in so many minutes."""
        return list(self.queue.claim(kind, 10, utc_now() + timedelta(minutes=minutes)))

    def execute(self, kind: RequestKind, minutes: float = 0) -> int:
        """Execute what can start in so many minutes, and return its number."""
        claimed = self.claim(kind, minutes)
        for request in claimed:
            self.worker._execute_claim(request.id, request.claim)
        return len(claimed)

    def close(self) -> None:
        self.queue.close()
        self.executor.close()


@pytest.fixture
def requests(tmp_path: Path) -> Iterator[Requests]:
    made = Requests(tmp_path)
    yield made
    made.close()


RUN, COMMAND = RequestKind.RUN, RequestKind.COMMAND
ASKED = reports.trigger()


def test_a_request_is_executed_once_however_often_it_is_delivered(requests: Requests) -> None:
    for delivery in ("first", "first"):
        requests.worker.enqueue(delivery, ASKED)
    assert requests.execute(RUN) == 1
    requests.worker.enqueue("first", ASKED)
    assert requests.execute(RUN) == 0
    assert requests.executed == [(ASKED, 1)]


def test_all_events_of_a_review_are_one_request(requests: Requests) -> None:
    review = reports.trigger(key="review:7", review_id=7)
    for delivery in ("comment-1", "comment-2", "review"):
        requests.worker.enqueue(delivery, review)
    assert [request.trigger for request in requests.claim(RUN)] == [review]


def test_another_event_of_the_same_comment_is_a_request_of_its_own(requests: Requests) -> None:
    """The run finds out that it was handled before."""
    for delivery in ("first", "second"):
        requests.worker.enqueue(delivery, ASKED)
    assert requests.execute(RUN) + requests.execute(RUN) == 2


@pytest.mark.parametrize("command", [Command.FIX, Command.QUESTION, Command.REVIEW, Command.UPDATE])
def test_new_work_waits_for_its_turn_and_is_not_sent_to_an_active_run(
    requests: Requests, command: Command
) -> None:
    requests.worker.enqueue("delivery", reports.trigger(command=command))
    assert requests.execute(COMMAND) == 0
    assert requests.execute(RUN) == 1


@pytest.mark.parametrize(("command", "count"), [(Command.CONTINUE, 1), (Command.STOP, 0)])
def test_a_command_that_asks_for_work_becomes_a_run(
    requests: Requests, command: Command, count: int
) -> None:
    requests.worker.enqueue("delivery", reports.trigger(command=command))
    assert requests.execute(RUN) == 0, "it does not wait behind a run"
    assert requests.execute(COMMAND) == 1
    assert requests.execute(RUN) == count


def test_what_came_too_late_for_a_run_is_executed_after_it(requests: Requests) -> None:
    late = reports.trigger(key="late", command=Command.CONTINUE)
    requests.worker.enqueue("delivery", ASKED)
    requests.follow_ups = (late,)
    requests.execute(RUN)
    requests.follow_ups = ()
    assert requests.execute(RUN) == 1 and requests.executed[-1] == (late, 1)


def test_a_run_is_repeated_after_an_outage_and_not_after_another_error(requests: Requests) -> None:
    requests.worker.enqueue("delivery", ASKED)
    requests.outage = ForgeError("GitHub is down", "try again", "forge_down")
    assert requests.execute(RUN) == 1
    assert requests.execute(RUN) == 0, "it waits"
    requests.outage = ForgeError("it is locked", "unlock it", "locked")
    assert requests.execute(RUN, minutes=30) == 1
    assert requests.execute(RUN, minutes=60) == 0
    assert [attempt for _, attempt in requests.executed] == [1, 2]
