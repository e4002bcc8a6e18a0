"""The queue of requests, on SQLite and on PostgreSQL."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.engine import URL

from resolver.entrypoints.webhook.request_queue import (
    APPLICATION,
    RUNS_QUEUE,
    Backlog,
    QueuedRequest,
    RequestKind,
    RequestQueue,
    RequestState,
)
from resolver.errors import UsageError
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.storage.database import DatabaseError, parse_database_url

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RUN, COMMAND = RequestKind.RUN, RequestKind.COMMAND


def trigger(number: int, repository: str = "octo/calc", key: str = "") -> Trigger:
    """The higher its number, the earlier it was made by GitHub's clock: the queue's order is its
    own."""
    return Trigger(
        key=key or f"{repository}#{number}",
        kind=TriggerKind.ISSUE_COMMENT,
        repository=repository,
        number=number,
        actor=Actor(login="mona"),
        at=NOW - timedelta(seconds=number),
    )


def run(number: int, repository: str = "octo/calc", key: str = "") -> QueuedRequest:
    return QueuedRequest(f"d-{number}", RUN, trigger(number, repository, key))


@pytest.fixture
def queue(database_url: URL) -> Iterator[RequestQueue]:
    made = RequestQueue(database_url)
    made.configure(2)
    yield made
    made.close()


def begin(queue: RequestQueue, executor: str = "here", limit: int = 2) -> list[QueuedRequest]:
    """Start what can start, as the threads of DBOS do in a process."""
    system = queue._client._sys_db
    system.transition_delayed_workflows()
    runs = system.get_queue(RUNS_QUEUE)
    assert runs is not None
    started = system.start_queued_partitioned_workflows(runs, executor, APPLICATION, limit)
    return [found for id in started if (found := queue.get(id)) is not None]


def finish(queue: RequestQueue, *requests: QueuedRequest) -> None:
    for request in requests:
        queue._client._sys_db.update_workflow_outcome(request.id, "SUCCESS", output="null")


def numbers(requests: list[QueuedRequest]) -> list[int | None]:
    return [request.trigger.number for request in requests]


def test_requests_start_in_the_order_in_which_they_came_one_of_each_repository(
    queue: RequestQueue,
) -> None:
    for number, repository in ((1, "o/a"), (2, "o/a"), (3, "O/B")):
        assert queue.add(run(number, repository))
    started = begin(queue, limit=9)
    assert sorted(filter(None, numbers(started))) == [1, 3]
    assert begin(queue) == []
    finish(queue, *started)
    assert numbers(begin(queue)) == [2]


def test_a_person_who_waits_goes_before_what_a_program_asked_for(queue: RequestQueue) -> None:
    def by_program(number: int, **changes: object) -> QueuedRequest:
        request = run(number)
        return replace(request, trigger=request.trigger.model_copy(update=changes))

    queue.add(by_program(1, kind=TriggerKind.CHECK_FAILED))
    queue.add(by_program(2, key="repository_dispatch:2"))
    queue.add(by_program(3, actor=Actor(login="bot", is_bot=True)))
    queue.add(run(4))
    order: list[int | None] = []
    for _ in range(4):
        [started] = begin(queue)
        order += numbers([started])
        finish(queue, started)
    assert order == [4, 1, 2, 3]


def test_a_known_id_changes_nothing_even_when_it_is_done(queue: RequestQueue) -> None:
    assert queue.add(run(1))
    assert not queue.add(run(1))
    finish(queue, *begin(queue))
    assert not queue.add(run(1))
    assert begin(queue) == []


def test_a_deferred_request_waits_for_its_time_and_keeps_others_waiting_no_longer(
    queue: RequestQueue,
) -> None:
    later = replace(run(1), outages=2, outage_began=NOW)
    queue.add(later, timedelta(hours=1))
    queue.add(run(2))
    [second] = begin(queue)
    assert numbers([second]) == [2]
    finish(queue, second)
    assert begin(queue) == []
    queue.start_now(later.id)
    [again] = begin(queue)
    assert (again.attempts, again.outages, again.outage_began) == (3, 2, NOW)


def test_a_command_is_taken_once_by_its_run_and_a_stop_until_the_run_is_over(
    queue: RequestQueue,
) -> None:
    """A process that dies takes what it has not logged with it. A stop must hold all the same, and
    an approval must not apply to another action."""
    stop = trigger(1, key="stop").model_copy(update={"command": Command.STOP})
    approval = trigger(1, key="approval").model_copy(update={"command": Command.APPROVE})
    for command in (stop, approval):
        queue.leave_command([run(1), run(2)], command)
    assert queue.take_commands(run(3).first_id) == []
    later = run(1).next_attempt(NOW)
    assert queue.take_commands(later.next_attempt(NOW).first_id) == [stop, approval]
    assert queue.take_commands(run(1).first_id) == [stop]
    assert queue.take_commands(later.first_id, is_over=True) == [stop]
    assert queue.take_commands(run(1).first_id) == []
    assert queue.take_commands(run(2).first_id, is_over=True) == [stop, approval]
    assert queue.take_commands(run(2).first_id) == []


def test_the_attempts_of_a_follow_up_are_its_own() -> None:
    retried = run(1).next_attempt(NOW)
    follow_up = replace(retried, name=f"{retried.name}.0", outages=0)
    assert follow_up.next_attempt(NOW).name == "d-1~1.0~1"
    assert follow_up.next_attempt(NOW).next_attempt(NOW).name == "d-1~1.0~2"


def test_a_full_database_is_named_and_takes_requests_again_later(
    tmp_path: Path,
) -> None:
    url = parse_database_url(f"sqlite:///{tmp_path}/resolver.db")

    def limit(connection: sqlite3.Connection, _: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages + room}")

    room = 100_000
    RequestQueue(url).close()
    room = 1
    event.listen(Engine, "connect", limit)
    try:
        full = RequestQueue(url)
        with pytest.raises(DatabaseError, match="database or disk is full") as caught:
            for number in range(1000):
                full.add(run(number))
        assert "has room" in caught.value.next_step
        full.check()
        full.close()
    finally:
        event.remove(Engine, "connect", limit)
    queue = RequestQueue(url)
    assert queue.add(run(5000))
    queue.close()


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "resolver.db"
    url = parse_database_url(f"sqlite:///{file}")
    file.write_bytes(b"no database" * 1000)
    with pytest.raises(UsageError, match="file is not a database") as refused:
        RequestQueue(url)
    assert str(file) in refused.value.what
    assert "restore the file from a backup" in refused.value.next_step

    file.unlink()
    RequestQueue(url).close()
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(UsageError, match="malformed") as caught:
        RequestQueue(url)
    assert "restore the file from a backup" in caught.value.next_step


def test_the_backlog_has_a_count_for_each_state_and_the_age_of_the_first(
    queue: RequestQueue,
) -> None:
    assert queue.backlog() == Backlog()
    for number in (5, 2, 9):
        queue.add(run(number))
    queue.add(run(1), timedelta(hours=1))
    [working] = begin(queue)
    backlog = queue.backlog()
    assert (backlog.waiting, backlog.deferred, backlog.working) == (2, 1, 1)
    assert backlog.age(datetime.now(UTC) + timedelta(seconds=9)) >= 9
    finish(queue, working)
    assert queue.backlog().working == 0
    states = {request.id: request.state for request in queue.recent()}
    assert states[working.id] is RequestState.DONE and states[run(1).id] is RequestState.DEFERRED
