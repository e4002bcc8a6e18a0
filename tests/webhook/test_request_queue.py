"""The queue of requests, on SQLite and on PostgreSQL."""

import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url

from resolver.entrypoints.webhook.request_queue import (
    MAX_CRASHES,
    MAX_LISTED,
    MAX_RETRY_WAIT,
    Backlog,
    NewRequest,
    QueuedRequest,
    RequestKind,
    StartedRequest,
)
from resolver.entrypoints.webhook.request_table import REQUESTS
from resolver.entrypoints.webhook.sql_request_queue import SqlRequestQueue
from resolver.errors import UsageError
from resolver.models.run import Actor, Trigger, TriggerKind
from resolver.storage.database import (
    DatabaseError,
    parse_database_url,
)
from tests.parts.postgres import Postgres

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


def run(number: int, repository: str = "octo/calc", key: str = "") -> NewRequest:
    return NewRequest(f"{repository}-{number}", RUN, trigger(number, repository, key))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    if request.param == "sqlite":
        yield parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
        return
    server: Postgres = request.getfixturevalue("postgres")
    with server.new_database() as url:
        yield url


@pytest.fixture
def queue(url: URL) -> Iterator[SqlRequestQueue]:
    made = SqlRequestQueue(url)
    yield made
    made.close()


def begin(queue: SqlRequestQueue, now: datetime = NOW, limit: int = 2) -> list[StartedRequest]:
    """Claim what can start, and start it."""
    claimed = queue.claim(RUN, limit, now)
    return [
        begun
        for request in claimed
        if (begun := queue.start(request.id, request.claim)) is not None
    ]


def numbers(requests: list[StartedRequest] | list[QueuedRequest]) -> list[int | None]:
    found = [
        request.request if isinstance(request, StartedRequest) else request for request in requests
    ]
    return [request.trigger.number for request in found]


def finish(queue: SqlRequestQueue, started: StartedRequest) -> None:
    queue.finish(started.request.id, started.request.claim)


def no_progress(_: Trigger) -> int:
    return 0


def test_requests_start_in_the_order_in_which_they_came_one_of_each_repository(
    queue: SqlRequestQueue,
) -> None:
    for number, repository in ((1, "o/a"), (2, "o/a"), (3, "O/B"), (4, "o/c")):
        assert queue.add(run(number, repository))
    first, third = begin(queue)
    assert numbers([first, third]) == [1, 3]
    assert begin(queue) == []
    finish(queue, first)
    assert numbers(begin(queue)) == [2]
    finish(queue, third)
    assert numbers(begin(queue)) == [4]


def test_a_person_who_waits_goes_before_what_a_program_asked_for(queue: SqlRequestQueue) -> None:
    def by_program(number: int, repository: str, **changes: object) -> NewRequest:
        request = run(number, repository)
        return replace(request, trigger=request.trigger.model_copy(update=changes))

    queue.add(by_program(1, "o/a", kind=TriggerKind.CHECK_FAILED))
    queue.add(by_program(2, "o/a", key="repository_dispatch:2"))
    queue.add(by_program(3, "o/b", actor=Actor(login="bot", is_bot=True)))
    queue.add(run(4, "o/a"))
    queue.add(run(5, "o/c"))
    order: list[int | None] = []
    for _ in range(5):
        [started] = begin(queue, limit=1)
        order += numbers([started])
        finish(queue, started)
    assert order == [4, 5, 1, 2, 3]


def by(login: str, request: NewRequest) -> NewRequest:
    trigger = request.trigger.model_copy(update={"actor": Actor(login=login)})
    return replace(request, trigger=trigger)


def test_active_runs_of_one_account_are_limited_and_others_go_first(url: URL) -> None:
    queue = SqlRequestQueue(url, active_limit=2)
    for number, repository in ((1, "o/a"), (2, "o/b"), (3, "o/c"), (4, "o/c"), (5, "o/d")):
        queue.add(by("Mona", run(number, repository)))
    queue.add(by("lisa", run(6, "o/c")))
    queue.add(by("lisa", run(7, "o/e")))
    first, second, seventh = begin(queue, limit=9)
    assert numbers([first, second, seventh]) == [1, 2, 7], "in each claim, too"
    assert numbers(begin(queue, limit=9)) == [6], "before those of the limited account"
    assert begin(queue, limit=9) == []
    finish(queue, second)
    assert numbers(begin(queue, limit=9)) == [5], "in the other repository a run is active"
    queue.close()


def test_a_known_id_changes_nothing_even_when_it_is_done(queue: SqlRequestQueue) -> None:
    assert queue.add(run(1))
    assert not queue.add(run(1))
    [started] = begin(queue)
    finish(queue, started)
    assert not queue.add(run(1))
    assert begin(queue) == []


def test_requests_that_come_at_the_same_time_are_all_stored(queue: SqlRequestQueue) -> None:
    together = threading.Barrier(8)

    def add(number: int) -> None:
        together.wait(60)
        queue.add(run(number, f"o/{number}"))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(filter(None, numbers(begin(queue, limit=9)))) == list(range(1, 8))


def test_requests_are_stored_after_the_database_ended_the_connection(postgres: Postgres) -> None:
    with postgres.new_database() as url:
        queue = SqlRequestQueue(parse_database_url(url.render_as_string(hide_password=False)))
        assert queue.add(run(1))
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                [url.database],
            )
        assert queue.add(run(2))
        assert not queue.add(run(1))
        queue.close()


def test_commands_do_not_wait_behind_runs(queue: SqlRequestQueue) -> None:
    queue.add(run(1))
    begin(queue)
    queue.add(NewRequest("stop", COMMAND, trigger(1)))
    assert numbers(queue.claim(COMMAND, 4, NOW)) == [1]


def test_a_run_that_waits_is_to_get_one_reaction(queue: SqlRequestQueue) -> None:
    for request in (run(1), run(2), run(3, "o/other"), NewRequest("stop", COMMAND, trigger(1))):
        queue.add(request)
    begin(queue, limit=1)
    waiting = queue.unacknowledged(10)
    assert numbers(waiting) == [2, 3]
    assert numbers(queue.unacknowledged(1)) == [2]
    queue.mark_acknowledged(waiting[:1])
    assert numbers(queue.unacknowledged(10)) == [3]


def test_a_deferred_request_waits_for_its_time_and_keeps_others_waiting_no_longer(
    queue: SqlRequestQueue,
) -> None:
    queue.add(run(1))
    queue.add(run(2))
    [first] = begin(queue)
    queue.defer(first.request.id, first.request.claim, NOW + timedelta(minutes=1), outage=NOW)
    [second] = begin(queue)
    assert numbers([second]) == [2]
    finish(queue, second)
    assert begin(queue) == []
    [again] = begin(queue, NOW + timedelta(minutes=1))
    assert (again.attempt, again.outages, again.outage_began) == (2, 1, NOW)
    later = NOW + timedelta(minutes=9)
    queue.defer(again.request.id, again.request.claim, later, outage=later)
    [again] = begin(queue, later)
    assert (again.outages, again.outage_began) == (2, NOW)


@pytest.mark.parametrize("jump", [timedelta(days=-400), timedelta(hours=-2), timedelta(days=400)])
def test_no_request_waits_for_a_clock_that_was_set_to_catch_up(
    queue: SqlRequestQueue, jump: timedelta
) -> None:
    queue.add(run(1))
    [started] = begin(queue)
    queue.defer(started.request.id, started.request.claim, NOW + MAX_RETRY_WAIT, outage=NOW)
    assert begin(queue) == []
    [again] = begin(queue, NOW + jump)
    assert numbers([again]) == [1]


def test_a_claim_ends_those_before_it(queue: SqlRequestQueue) -> None:
    queue.add(run(1))
    [old] = begin(queue)
    queue.recover(stopped=True, progress=no_progress)
    assert queue.start(old.request.id, old.request.claim) is None
    [new] = begin(queue)
    finish(queue, old)
    assert queue.start(new.request.id, new.request.claim) is not None


@contextmanager
def before_claiming(interrupt: Callable[[], object]) -> Iterator[None]:
    """Call the function once, after requests were chosen and before they are claimed."""

    was_called = threading.Event()

    def look(_: object, __: object, statement: str, *___: object) -> None:
        if statement.endswith("FOR UPDATE") and not was_called.is_set():
            was_called.set()
            interrupt()

    event.listen(Engine, "before_cursor_execute", look)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", look)
    assert was_called.is_set()


def test_claims_keep_no_delivery_waiting_and_do_not_undo_what_an_operator_does(
    postgres: Postgres,
) -> None:
    """In PostgreSQL, where a claim locks only other claims."""
    with postgres.new_database() as url:
        ours = parse_database_url(url.render_as_string(hide_password=False))
        queue, other = SqlRequestQueue(ours), SqlRequestQueue(ours)
        for number, repository in ((1, "o/a"), (2, "o/b")):
            queue.add(run(number, repository))

        def interrupt() -> None:
            with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
                connection.execute("SET lock_timeout = '10s'")
                connection.execute(
                    f"UPDATE {REQUESTS.name} SET state = 'done' WHERE id = %s", [run(1, "o/a").id]
                )
            assert other.add(run(3, "o/c"))

        with before_claiming(interrupt):
            assert numbers(begin(queue)) == [2]
        assert numbers(begin(queue)) == [3]
        queue.close()
        other.close()


def crash(
    queue: SqlRequestQueue, now: datetime, progress: int = 0, stopped: bool = False
) -> list[StartedRequest]:
    """The server ends, starts again, and works on what can start, however long that has to wait."""
    queue.recover(stopped, lambda _: progress)
    return begin(queue, now + timedelta(hours=1))


def test_a_requested_end_of_the_server_does_not_count_as_a_crash_of_a_run(
    queue: SqlRequestQueue,
) -> None:
    queue.add(run(1))
    begin(queue)
    for _ in range(2 * MAX_CRASHES):
        [started] = crash(queue, NOW, stopped=True)
        assert started.crashes == 0


def test_crashes_are_not_held_against_a_run_that_makes_progress(queue: SqlRequestQueue) -> None:
    queue.add(run(1))
    begin(queue)
    for progress in range(1, 2 * MAX_CRASHES):
        [started] = crash(queue, NOW, progress)
        assert started.crashes == 0


@pytest.mark.attack
def test_crashes_without_progress_count(queue: SqlRequestQueue) -> None:
    """A request crashes the server each time: each crash counts, until it is given up."""
    queue.add(run(1))
    begin(queue)
    assert [crash(queue, NOW)[0].crashes for _ in range(MAX_CRASHES)] == [1, 2, 3, 4, 5]
    [started] = crash(queue, NOW, progress=1)
    assert started.crashes == 0
    [started] = crash(queue, NOW, progress=1)
    assert started.crashes == 1, "progress since the last crash counts, and not that before it"


def test_what_had_not_begun_is_not_blamed_for_a_crash(queue: SqlRequestQueue) -> None:
    queue.add(run(1))
    for _ in range(2 * MAX_CRASHES):
        queue.claim(RUN, 1, NOW)
        queue.recover(stopped=False, progress=no_progress)
    [started] = begin(queue)
    assert started.crashes == 0


def test_the_unfinished_runs_of_a_thread(queue: SqlRequestQueue) -> None:
    for request in (run(1), run(2), run(1, "o/other"), NewRequest("c", COMMAND, trigger(1))):
        queue.add(request)
    [found] = queue.unfinished_runs("Octo/Calc", 1)
    assert (found.repository, found.number) == ("octo/calc", 1)
    for started in begin(queue):
        finish(queue, started)
    assert queue.unfinished_runs("octo/calc", 1) == []


def test_a_done_request_keeps_no_text_of_people(queue: SqlRequestQueue, url: URL) -> None:
    queue.add(run(1))
    [started] = begin(queue)
    finish(queue, started)
    engine = connected(url)
    with engine.connect() as connection:
        [row] = connection.execute(REQUESTS.select()).all()
    engine.dispose()
    assert (row.state, row.trigger) == ("done", "")


def connected(url: URL) -> Engine:
    is_sqlite = url.get_backend_name() == "sqlite"
    return create_engine(url if is_sqlite else url.set(drivername="postgresql+psycopg"))


def rows_of_waiting_runs(count: int, repository: str = "octo/calc") -> list[dict[str, Any]]:
    template = trigger(1, repository)
    return [
        {
            "id": f"{repository}-{count}-{number}",
            "kind": "run",
            "state": "waiting",
            "repository": repository,
            "number": number,
            "subject": number,
            "key": f"{repository}#{number}",
            "trigger": template.model_dump_json(),
            "login": "",
        }
        for number in range(count)
    ]


def fill(url: URL, count: int, repository: str = "octo/calc") -> None:
    """As many waiting runs of one repository."""
    rows = rows_of_waiting_runs(count, repository)
    engine = connected(url)
    with engine.begin() as connection:
        connection.execute(REQUESTS.insert(), rows)
    engine.dispose()


class Work:
    """Counts the statements of all engines, and the steps of SQLite's virtual machine."""

    def __init__(self) -> None:
        self.statements = self.steps = 0
        event.listen(Engine, "connect", self._connected)
        event.listen(Engine, "before_cursor_execute", self._executed)

    def _connected(self, connection: Any, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.set_progress_handler(self._stepped, 1)

    def _stepped(self) -> int:
        self.steps += 1
        return 0

    def _executed(self, *_: object) -> None:
        self.statements += 1

    def close(self) -> None:
        event.remove(Engine, "connect", self._connected)
        event.remove(Engine, "before_cursor_execute", self._executed)


@pytest.fixture
def work() -> Iterator[Work]:
    made = Work()
    yield made
    made.close()


def test_a_delivery_is_stored_by_one_statement(
    work: Work, queue: SqlRequestQueue, url: URL
) -> None:
    queue.add(run(1))
    before = work.statements
    queue.add(run(2))
    begins = url.get_backend_name() == "sqlite"  # BEGIN is a statement there
    assert work.statements - before == 1 + begins


def test_the_cost_of_each_look_does_not_grow_with_what_waits(tmp_path: Path, work: Work) -> None:
    url = parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
    queue = SqlRequestQueue(url)

    def costs() -> list[int]:
        found = []

        def count(call: Any, *arguments: Any) -> Any:
            before = work.steps
            done = call(*arguments)
            found.append(work.steps - before)
            return done

        name = f"o/{uuid.uuid4().hex}"
        count(queue.add, run(1, name))
        [first] = count(queue.unacknowledged, 1)
        count(queue.unfinished_runs, first.trigger.repository, first.trigger.number)
        for claimed in count(queue.claim, RUN, 2, NOW):
            count(queue.start, claimed.id, claimed.claim)
            count(queue.finish, claimed.id, claimed.claim)
        count(queue.recover, True, no_progress)
        return found

    fill(url, MAX_LISTED * 2, "o/a")
    fill(url, MAX_LISTED * 2, "o/b")
    few = costs()
    fill(url, 10_000, "o/a")
    fill(url, 10_000, "o/b")
    many = costs()
    assert len(few) == len(many)
    for less, more in zip(few, many, strict=True):
        assert more < 2 * less + 200, (few, many)
    queue.close()


def test_a_full_database_is_named_and_takes_requests_again_later(
    tmp_path: Path,
) -> None:
    url = parse_database_url(f"sqlite:///{tmp_path}/resolver.db")

    def limit(connection: sqlite3.Connection, _: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages + room}")

    room = 100_000
    SqlRequestQueue(url).close()
    room = 1
    event.listen(Engine, "connect", limit)
    try:
        full = SqlRequestQueue(url)
        with pytest.raises(DatabaseError, match="database or disk is full") as caught:
            for number in range(1000):
                full.add(run(number))
        assert "has room" in caught.value.next_step
        full.check()
        full.close()
    finally:
        event.remove(Engine, "connect", limit)
    queue = SqlRequestQueue(url)
    assert queue.add(run(5000))
    queue.close()


def test_a_database_that_is_gone_fails_the_check(tmp_path: Path) -> None:
    queue = SqlRequestQueue(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"))
    queue.check()
    (tmp_path / "resolver.db").unlink()
    with pytest.raises(DatabaseError, match="gone"):
        queue.check()
    queue.close()


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "resolver.db"
    url = parse_database_url(f"sqlite:///{file}")
    file.write_bytes(b"no database" * 1000)
    with pytest.raises(UsageError, match="file is not a database") as refused:
        SqlRequestQueue(url)
    assert str(file) in refused.value.what
    assert "restore the file from a backup" in refused.value.next_step

    file.unlink()
    SqlRequestQueue(url).close()
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(UsageError, match="malformed") as caught:
        SqlRequestQueue(url)
    assert "restore the file from a backup" in caught.value.next_step


def test_a_stopped_postgresql_fails_the_check_and_loses_nothing(postgres: Postgres) -> None:
    name = f"queue_{uuid.uuid4().hex}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    queue = SqlRequestQueue(make_url(postgres.url).set(database=name))
    queue.add(run(1))
    postgres.stop()
    try:
        with pytest.raises(DatabaseError):
            queue.check()
        with pytest.raises(DatabaseError):
            queue.add(run(2))
    finally:
        postgres.start()
    queue.check()
    assert numbers(begin(queue)) == [1]
    queue.close()


def test_the_backlog_has_a_count_for_each_state_and_the_age_of_the_first(
    queue: SqlRequestQueue,
) -> None:
    assert queue.backlog() == Backlog()
    for number in (5, 2, 9):
        queue.add(run(number))
    [working] = queue.claim(RUN, 1, NOW)
    oldest = NOW - timedelta(seconds=2)
    assert queue.backlog() == Backlog(waiting=2, working=1, oldest=oldest), "the first in the queue"
    queue.defer(working.id, working.claim, NOW + MAX_RETRY_WAIT)
    assert queue.backlog() == Backlog(waiting=2, deferred=1, oldest=oldest)
