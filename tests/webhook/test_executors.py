"""Executors of one database: their leases, what they may claim, and who takes over."""

import threading
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, text, update

from resolver.entrypoints.webhook.data_folder import DataFolder
from resolver.entrypoints.webhook.executors import (
    EXECUTORS,
    LEASE_SECONDS,
    SAFETY_SECONDS,
    ExecutorKind,
    Fence,
    LeaseTimes,
    RegisteredExecutor,
)
from resolver.entrypoints.webhook.request_queue import (
    NewRequest,
    RequestKind,
    StartedRequest,
)
from resolver.entrypoints.webhook.sql_request_queue import SqlRequestQueue
from resolver.entrypoints.webhook.worker import hand_over
from resolver.errors import LeaseLost
from resolver.events.lifecycle import Warned
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream
from resolver.git.git import Credential
from resolver.github.client.access import FixedToken, LeasedTokens
from resolver.models.run import Actor, Trigger, TriggerKind
from resolver.storage.database import parse_database_url
from tests.parts.postgres import Postgres

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RUN, COMMAND = RequestKind.RUN, RequestKind.COMMAND


@dataclass
class Clock:
    """A clock that advances only when a test says so."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def new_request(number: int, repository: str = "octo/calc", kind: RequestKind = RUN) -> NewRequest:
    trigger = Trigger(
        key=f"{kind.value} {repository}#{number}",
        kind=TriggerKind.ISSUE_COMMENT,
        repository=repository,
        number=number,
        actor=Actor(login="mona"),
        at=NOW,
    )
    return NewRequest(f"{kind.value}-{repository}-{number}", kind, trigger)


def test_a_fence_is_open_from_the_first_lease_until_shortly_before_its_end() -> None:
    clock = Clock()
    fence = Fence("e", clock=clock)
    fence.extend(clock.now, LEASE_SECONDS)
    clock.now += LEASE_SECONDS - SAFETY_SECONDS - 0.1
    fence.require_valid()
    clock.now += 0.1
    with pytest.raises(LeaseLost) as caught:
        fence.require_valid()
    assert caught.value.is_silent


def test_a_lost_lease_is_not_revived_by_a_late_answer() -> None:
    clock = Clock()
    fence = Fence("e", clock=clock)
    fence.extend(clock.now, LEASE_SECONDS)
    clock.now += 3600  # the machine was suspended
    assert not fence.is_valid
    fence.extend(clock.now, LEASE_SECONDS)
    assert not fence.is_valid


def test_a_fence_without_a_lease_is_closed_and_one_that_never_expires_can_be_closed() -> None:
    assert not Fence("e").is_valid
    fence = Fence("e", expires=False, clock=Clock())
    assert fence.is_valid
    fence.close()
    assert not fence.is_valid


def test_nothing_that_reaches_the_outside_passes_a_closed_fence() -> None:
    fence = Fence("e", expires=False)
    tokens = LeasedTokens(FixedToken("secret-token"), fence.require_valid)
    credential = Credential("https://github.com", "secret-token", fence.require_valid)
    stream = EventStream(MemoryStore(), before_append=fence.require_valid)
    nested_store, store_event = MemoryStore(), Warned(about="test", message="hello")
    nested = stream.nested(nested_store)
    assert tokens.token() == "secret-token" and credential.settings
    assert stream.add(store_event).id == 0
    fence.close()
    for write in (
        tokens.token,
        lambda: tokens.pause(0.0),
        lambda: credential.settings,
        lambda: stream.add(store_event),
        lambda: nested.add(store_event),
    ):
        with pytest.raises(LeaseLost):
            write()
    assert len(nested_store) == 0


def test_a_lease_that_ends_while_a_token_is_issued_keeps_the_token() -> None:
    fence = Fence("e", expires=False)

    class SlowSource(FixedToken):
        def token(self) -> str:
            fence.close()
            return self.value

    with pytest.raises(LeaseLost):
        LeasedTokens(SlowSource("secret-token"), fence.require_valid).token()


@pytest.fixture
def url(postgres: Postgres) -> Iterator[URL]:
    """An empty database of PostgreSQL."""
    with postgres.new_database() as url:
        yield url


@dataclass
class Fleet:
    """Executors of one database, with their queues."""

    url: URL
    clock: Clock = field(default_factory=Clock)
    members: list["Member"] = field(default_factory=list)

    def add(self, kind: ExecutorKind = ExecutorKind.WORKER) -> "Member":
        executor = RegisteredExecutor(self.url, kind, 2, clock=self.clock)
        executor.register()
        member = Member(self, executor, SqlRequestQueue(self.url, executor.id))
        self.members.append(member)
        return member

    def execute(self, statement: object) -> None:
        is_postgresql = self.url.get_backend_name() == "postgresql"
        driver = "postgresql+psycopg" if is_postgresql else "sqlite"
        engine = create_engine(self.url.set(drivername=driver))
        with engine.begin() as connection:
            connection.execute(statement)  # type: ignore[call-overload]
        engine.dispose()

    def close(self) -> None:
        for member in self.members:
            member.executor.close()
            member.queue.close()


@dataclass
class Member:
    """An executor and its queue."""

    fleet: Fleet
    executor: RegisteredExecutor
    queue: SqlRequestQueue

    def begin(
        self, kind: RequestKind = RUN, limit: int = 2, now: datetime = NOW
    ) -> list[StartedRequest]:
        claimed = self.queue.claim(kind, limit, now)
        return [run for request in claimed if (run := self.queue.start(request.id, request.claim))]

    def die(self) -> None:
        """Let its lease end, as if nobody had renewed it."""
        row = EXECUTORS.c.id == self.executor.id
        self.fleet.execute(update(EXECUTORS).where(row).values(lease_until=1.0))

    def recover(self, predecessor: str = "", stopped: bool = False) -> None:
        self.queue.recover(stopped, lambda _: 0, predecessor)


@pytest.fixture
def fleet(url: URL) -> Iterator[Fleet]:
    made = Fleet(url)
    yield made
    made.close()


def test_each_executor_has_its_own_slots_and_a_repository_one_run_in_all(fleet: Fleet) -> None:
    first, second = fleet.add(), fleet.add()
    for number, repository in enumerate(("o/a", "o/a", "o/b", "o/c", "o/d", "o/e"), 1):
        first.queue.add(new_request(number, repository))
    claimed = [len(member.begin()) for member in (first, second, first, second)]
    assert claimed == [2, 2, 0, 0]


def test_two_executors_that_claim_at_the_same_time_never_get_the_same_request(
    fleet: Fleet,
) -> None:
    members = [fleet.add() for _ in range(4)]
    for number in range(12):
        members[0].queue.add(new_request(number, f"o/{number}"))
    together, claimed = threading.Barrier(4), []

    def claim(member: Member) -> None:
        together.wait(60)
        claimed.extend(request.id for request in member.queue.claim(RUN, 3, NOW))

    threads = [threading.Thread(target=claim, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claimed) == len(set(claimed)) == 12


def test_the_claims_of_a_dead_executor_go_to_another_one_and_count_as_a_crash(
    fleet: Fleet,
) -> None:
    dead, alive = fleet.add(), fleet.add()
    alive.queue.add(new_request(1))
    [started] = dead.begin()
    alive.recover()
    assert alive.begin() == [], "its lease has not ended"
    dead.die()
    alive.recover()
    [again] = alive.begin()
    assert (again.attempt, again.crashes) == (2, 1)
    # what the dead one still does has no effect
    dead.queue.finish(started.request.id, started.request.claim)
    dead.queue.defer(started.request.id, started.request.claim, NOW)
    dead.recover()
    assert dead.begin() == [] and not dead.executor.renew() and not dead.executor.fence.is_valid
    assert alive.queue.backlog().working == 1


def test_only_the_runs_of_the_dead_executor_are_held_responsible(fleet: Fleet) -> None:
    dead, alive = fleet.add(), fleet.add()
    alive.queue.add(new_request(1, "o/a"))
    [other] = alive.begin()
    alive.queue.add(new_request(2, "o/b"))
    dead.begin()
    dead.die()
    alive.recover()
    [again] = alive.begin()
    assert (again.request.trigger.number, again.crashes) == (2, 1)
    alive.queue.defer(other.request.id, other.request.claim, NOW)
    [continued] = alive.begin(now=NOW + timedelta(minutes=1))
    assert (continued.request.trigger.number, continued.crashes) == (1, 0)


def test_an_executor_that_ends_hands_its_claims_over_at_once_without_a_crash(
    fleet: Fleet,
) -> None:
    ending, other = fleet.add(), fleet.add()
    other.queue.add(new_request(1))
    ending.begin()
    ending.executor.end_writes()
    ending.executor.mark_draining()
    other.queue.add(new_request(2, "o/b"))
    assert ending.begin() == []
    ending.queue.release()
    assert {started.request.trigger.number: started.crashes for started in other.begin()} == {
        1: 0,
        2: 0,
    }


def test_a_rolling_restart_announces_pauses_while_no_other_process_can_take_the_runs_over(
    fleet: Fleet,
) -> None:
    ending, other = fleet.add(), fleet.add()
    other.queue.add(new_request(1))
    [run] = ending.begin()
    announced: list[Trigger] = []

    def announce(triggers: Collection[Trigger]) -> None:
        announced.extend(triggers)
        assert not ending.executor.fence.is_valid, "the run may still write its comment"
        assert other.begin() == [], "the run may write its comment elsewhere"

    hand_over(ending.executor, ending.queue, [run.request.trigger], announce)
    assert announced == [run.request.trigger]
    [again] = other.begin()
    assert (again.attempt, again.crashes) == (2, 0)
    assert ending.begin() == []


def test_an_executor_that_is_killed_while_it_ends_is_no_crash(fleet: Fleet) -> None:
    ending, other = fleet.add(), fleet.add()
    other.queue.add(new_request(1))
    ending.begin()
    ending.executor.mark_draining()
    ending.die()
    other.recover()
    [again] = other.begin()
    assert again.crashes == 0


@pytest.mark.parametrize("stopped", [True, False])
def test_the_claims_of_the_one_before_in_the_data_folder_are_recovered_at_once(
    fleet: Fleet, tmp_path: Path, stopped: bool
) -> None:
    folder = DataFolder(tmp_path / "runs")
    before = fleet.add()
    assert folder.take_predecessor(before.executor.id) == ""
    before.queue.add(new_request(1))
    before.begin()
    after = fleet.add()
    after.recover(folder.take_predecessor(after.executor.id), stopped)
    [again] = after.begin()
    assert again.crashes == (0 if stopped else 1)


def test_a_claim_of_a_release_without_executors_is_recovered(url: URL) -> None:
    with closing(SqlRequestQueue(url)) as earlier:
        earlier.add(new_request(1))
        earlier.claim(RUN, 2, NOW)
    fleet = Fleet(url)
    with closing(fleet):
        member = fleet.add()
        member.recover()
        assert len(member.begin()) == 1


def test_a_command_goes_to_the_executor_of_the_active_run_of_its_repository(fleet: Fleet) -> None:
    working, other = fleet.add(), fleet.add()
    other.queue.add(new_request(1))
    [run] = working.begin()
    other.queue.add(new_request(2, kind=COMMAND))
    other.queue.add(new_request(3, "o/idle", kind=COMMAND))
    assert [started.request.trigger.number for started in other.begin(COMMAND)] == [3]
    assert [started.request.trigger.number for started in working.begin(COMMAND)] == [2]
    working.queue.finish(run.request.id, run.request.claim)
    other.queue.add(new_request(4, kind=COMMAND))
    assert [started.request.trigger.number for started in other.begin(COMMAND)] == [4]


def test_a_command_that_was_claimed_before_the_run_started_elsewhere_is_passed_on(
    fleet: Fleet,
) -> None:
    working, other = fleet.add(), fleet.add()
    other.queue.add(new_request(1, kind=COMMAND))
    [command] = other.queue.claim(COMMAND, 4, NOW)
    other.queue.add(new_request(2))
    working.begin()
    assert other.queue.start(command.id, command.claim) is None
    assert len(working.begin(COMMAND)) == 1


def test_the_longest_running_executor_of_a_kind_does_what_only_one_does(fleet: Fleet) -> None:
    fleet.add(ExecutorKind.WORKER)
    first, second = fleet.add(ExecutorKind.SERVE), fleet.add(ExecutorKind.SERVE)
    assert (first.executor.is_first(), second.executor.is_first()) == (True, False)
    first.executor.mark_draining()
    assert second.executor.is_first()


def test_a_heartbeat_that_finds_its_lease_taken_ends_the_executor(url: URL) -> None:
    fleet = Fleet(url)
    executor = RegisteredExecutor(url, times=LeaseTimes(lease=3600.0, heartbeat=0.01, safety=0.0))
    with closing(fleet), closing(executor):
        executor.register()
        lost = threading.Event()
        executor.start_heartbeat(lost.set)
        assert executor.fence.is_valid
        fleet.execute(text("DELETE FROM resolver_executors"))
        assert lost.wait(120)
        assert not executor.fence.is_valid


def test_in_sqlite_there_is_one_executor_whose_lease_never_ends(tmp_path: Path) -> None:
    fleet = Fleet(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"))
    with closing(fleet):
        before = fleet.add()
        before.queue.add(new_request(1))
        before.begin()
        fleet.clock.now += 10 * LEASE_SECONDS
        assert before.executor.renew() and before.executor.fence.is_valid
        after = fleet.add()
        after.recover()
        assert len(after.begin()) == 1 and before.begin() == []
