"""What the worker does with each kind of request, on DBOS and SQLite.

Which requests start is in test_request_queue.py.
"""

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dbos
import pytest

from resolver.controller.control import Pause, Resume, Stop
from resolver.entrypoints.webhook.background_threads import BackgroundThreads
from resolver.entrypoints.webhook.executors import LeasedExecutor
from resolver.entrypoints.webhook.request_queue import (
    APPLICATION,
    RUNS_QUEUE,
    QueuedRequest,
    RequestKind,
    RequestQueue,
    RequestState,
)
from resolver.entrypoints.webhook.request_runner import RequestResult
from resolver.entrypoints.webhook.run_commands import RunCommands
from resolver.entrypoints.webhook.worker import (
    MAX_RECOVERIES,
    RequestIntake,
    Worker,
)
from resolver.errors import ForgeError
from resolver.models.run import Command, Trigger
from resolver.storage.database import DatabaseError, ServerDatabase, parse_database_url
from tests.github import reports
from tests.parts.waiting import until
from tests.webhook.test_comment_commands import taken


@dataclass
class Requests:
    """A worker whose runs and commands do nothing.

    outage: ends every run. released: lets runs end. commands_of_run: those of the newest run.
    """

    folder: Path
    outage: Exception | None = None
    executed: list[tuple[Trigger, int]] = field(default_factory=list)
    given_up: list[Trigger] = field(default_factory=list)
    commands: list[Trigger] = field(default_factory=list)
    commands_of_run: RunCommands = field(default_factory=RunCommands)
    acknowledged: list[Trigger] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.released.set()
        url = parse_database_url(f"sqlite:///{self.folder}/resolver.db")
        self.database = ServerDatabase(url)
        self.queue = RequestQueue(self.database)
        self.intake = RequestIntake(self.queue, self.acknowledged.append)
        self.executor = LeasedExecutor(self.database)
        self.executor.register()
        runs: Any = SimpleNamespace(execute=self.execute_run, outage_retry=timedelta(hours=1))
        commands: Any = SimpleNamespace(execute=self.execute_command)
        self.worker = Worker(url, self.queue, runs, commands, self.executor)

    def start(self) -> None:
        self.worker.start()
        BackgroundThreads().start("recovery", self.worker.look_forever)

    def execute_run(
        self, request: QueuedRequest, failure: str | None, commands: RunCommands
    ) -> RequestResult:
        if failure:
            self.given_up.append(request.trigger)
            return RequestResult("run", 1, "error")
        self.commands_of_run = commands
        self.executed.append((request.trigger, request.attempts))
        assert self.released.wait(60)
        if self.outage is not None:
            raise self.outage
        return RequestResult("run", 0, "finished")

    def execute_command(self, trigger: Trigger) -> Trigger | None:
        """Let every command but a stop become a run."""
        self.commands.append(trigger)
        return None if trigger.command is Command.STOP else trigger

    def wait(self, count: int) -> None:
        """Wait until all requests are done, and that many were stored."""

        def is_over() -> bool:
            found = self.queue.recent()
            return len(found) == count and not self.queue.unfinished()

        until(is_over)

    def close(self) -> None:
        self.released.set()
        with suppress(DatabaseError):  # it was not started
            self.worker.drain()
        dbos.DBOS.destroy(destroy_registry=True)
        self.queue.close()
        self.database.close()


@pytest.fixture
def requests(tmp_path: Path) -> Iterator[Requests]:
    made = Requests(tmp_path)
    yield made
    made.close()


ASKED = reports.trigger()


def test_all_events_of_a_review_are_one_request_and_those_of_a_comment_are_not(
    requests: Requests,
) -> None:
    """The run of another event of the same comment finds out that it was handled before."""
    review = reports.trigger(key="review:7", review_id=7)
    for delivery in ("comment-1", "comment-2", "review"):
        requests.intake.enqueue(delivery, review)
        requests.intake.enqueue(delivery, ASKED)
    triggers = [request.trigger for request in requests.queue.recent()]
    assert (triggers.count(review), triggers.count(ASKED)) == (1, 3)


def test_new_work_waits_for_its_turn_and_commands_do_not(requests: Requests) -> None:
    """A command that asks for more work becomes a run."""
    requests.released.clear()
    requests.intake.enqueue("active", ASKED)
    requests.start()
    until(lambda: requests.executed)
    work = (Command.FIX, Command.QUESTION, Command.REVIEW, Command.UPDATE)
    commands = (Command.CONTINUE, Command.STOP)
    for command in (*work, *commands):
        requests.intake.enqueue(command.value, reports.trigger(command=command))
    until(lambda: {trigger.command for trigger in requests.commands} == set(commands))
    assert len(requests.executed) == 1
    requests.released.set()
    requests.wait(1 + len(work) + len(commands) + 1)
    executed = {trigger.command for trigger, _ in requests.executed}
    assert executed == {*work, Command.CONTINUE}


def test_a_command_that_was_left_reaches_the_run_once(
    requests: Requests, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    requests.released.clear()
    requests.intake.enqueue("delivery", ASKED)
    requests.start()
    until(lambda: requests.executed)
    for command in (Command.STOP, Command.PAUSE, Command.RESUME):
        sent = reports.trigger(key=command.value, command=command, instruction="")
        requests.queue.leave_command(requests.queue.active(), sent)
        reached = f"{command.value} on octo/demo#12 has reached the run"
        until(lambda text=reached: text in caplog.text)
    found = taken(requests.commands_of_run.control)
    assert [type(request) for request in found] == [Stop, Pause, Resume]
    [run] = requests.queue.active()
    [stop] = requests.queue.take_commands(run.first_id)
    assert stop.command is Command.STOP, "until it is over"


def test_what_came_too_late_for_a_run_is_executed_after_it(requests: Requests) -> None:
    """One was sent to the run, which did not read it; one was left as it ended, and one for a
    request that was cancelled."""
    cancelled = QueuedRequest("cancelled", RequestKind.RUN, ASKED)
    requests.released.clear()
    requests.intake.enqueue("delivery", ASKED)
    requests.start()
    until(lambda: requests.executed)
    [run] = requests.queue.active()
    for key, command in (("unread", Command.MESSAGE), ("stop", Command.STOP)):
        requests.queue.leave_command([run], reports.trigger(key=key, command=command))
    until(lambda: requests.commands_of_run.control.is_stopped)
    requests.released.set()
    requests.wait(2)
    for key, request in (("last moment", run), ("approval", cancelled)):
        late = reports.trigger(key=key, command=Command.APPROVE)
        requests.queue.leave_command([request], late)
    requests.wait(4)
    assert [trigger.command for trigger, _ in requests.executed[:2]] == [
        ASKED.command,
        Command.CONTINUE,
    ]
    assert {t.key for t, _ in requests.executed[2:]} == {"last moment", "approval"}
    assert requests.queue.take_commands(run.first_id) == []


def test_what_a_run_did_not_read_before_an_outage_is_left_for_its_next_attempt(
    requests: Requests, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    requests.released.clear()
    requests.outage = ForgeError("GitHub is down", "try again", "forge_down")
    requests.intake.enqueue("delivery", ASKED)
    requests.start()
    until(lambda: requests.executed)
    [run] = requests.queue.active()
    message = reports.trigger(key="unread", command=Command.MESSAGE)
    requests.queue.leave_command([run], message)
    until(lambda: "has reached the run" in caplog.text)
    requests.released.set()
    until(lambda: requests.queue.recent([RequestState.DEFERRED]))
    until(lambda: [c.key for c in requests.queue.take_commands(run.first_id)] == ["unread"])


def test_a_run_is_repeated_after_an_outage_and_not_after_another_error(requests: Requests) -> None:
    requests.outage = ForgeError("GitHub is down", "try again", "forge_down")
    requests.intake.enqueue("delivery", ASKED)
    requests.start()

    def deferred() -> list[str]:
        return [request.id for request in requests.queue.recent([RequestState.DEFERRED])]

    until(deferred)
    requests.outage = ForgeError("it is locked", "unlock it", "locked")
    [id] = deferred()
    requests.queue.start_now(id)
    requests.wait(2)
    assert [attempt for _, attempt in requests.executed] == [1, 2]


def test_a_run_that_fails_unexpectedly_says_so_and_the_next_one_starts(requests: Requests) -> None:
    requests.outage = KeyError("secret")
    requests.intake.enqueue("first", ASKED)
    requests.start()
    until(lambda: requests.given_up)
    requests.outage = None
    requests.intake.enqueue("second", reports.trigger(key="second"))
    requests.wait(2)
    assert requests.given_up == [ASKED]
    assert [trigger.key for trigger, _ in requests.executed] == [ASKED.key, "second"]


@pytest.mark.attack
def test_a_run_whose_processes_die_again_and_again_is_given_up_and_it_is_said(
    requests: Requests,
) -> None:
    """A request crashes the server each time: it is given up, and its conversation learns it."""
    requests.intake.enqueue("delivery", ASKED)
    requests.queue.configure(2)
    system = requests.queue._client._sys_db
    runs = system.get_queue(RUNS_QUEUE)
    assert runs is not None
    for number in range(MAX_RECOVERIES + 1):
        dead = f"dead-{number}"
        [id] = system.start_queued_partitioned_workflows(runs, dead, APPLICATION)
        if number < MAX_RECOVERIES:
            assert system.reenqueue_for_recovery(id, [dead], RUNS_QUEUE)
    requests.start()  # it finds the last one dead
    requests.wait(1)
    assert requests.given_up == [ASKED] and not requests.executed


def test_a_request_that_can_not_be_read_is_set_aside(requests: Requests) -> None:
    options: dbos.EnqueueOptions = {
        "workflow_name": "run",
        "queue_name": RUNS_QUEUE,
        "queue_partition_key": "octo/calc",
    }
    requests.queue._client.enqueue(options, "no trigger", 0, 0.0)
    requests.queue.add(QueuedRequest("readable", RequestKind.RUN, ASKED))
    requests.start()
    until(lambda: requests.executed == [(ASKED, 1)] and not requests.queue.unfinished())
