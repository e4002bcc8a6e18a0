"""Executors of one database: their fences and leases."""

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import URL, text, update

from resolver.entrypoints.webhook.executors import (
    EXECUTORS,
    HEARTBEATS,
    LEASE_SECONDS,
    LeasedExecutor,
)
from resolver.entrypoints.webhook.process import ServerProcess
from resolver.errors import LeaseLost
from resolver.events.lifecycle import Warned
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream
from resolver.git.git import Credential
from resolver.github.client.access import FixedToken, LeasedTokens
from resolver.storage.database import ServerDatabase, parse_database_url
from tests.parts.postgres import Postgres


@dataclass
class Clock:
    """A clock that advances only when a test says so."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def test_nothing_that_reaches_the_outside_passes_an_executor_that_has_ended(
    tmp_path: Path,
) -> None:
    with closing(ServerDatabase(parse_database_url(f"sqlite:///{tmp_path}/r.db"))) as database:
        executor = LeasedExecutor(database)
    tokens = LeasedTokens(FixedToken("secret-token"), executor.require_valid)
    credential = Credential("https://github.com", "secret-token", executor.require_valid)
    stream = EventStream(MemoryStore(), before_append=executor.require_valid)
    nested_store, store_event = MemoryStore(), Warned(about="test", message="hello")
    nested = stream.nested(nested_store)
    assert tokens.token() == "secret-token" and credential.settings
    assert stream.add(store_event).id == 0
    executor.end()
    for write in (
        tokens.token,
        lambda: credential.settings,
        lambda: stream.add(store_event),
        lambda: nested.add(store_event),
    ):
        with pytest.raises(LeaseLost) as caught:
            write()
        assert caught.value.is_silent
    assert len(nested_store) == 0


@pytest.fixture
def database(postgres: Postgres) -> Iterator[ServerDatabase]:
    """An empty database of PostgreSQL."""
    with postgres.new_database() as url, closing(ServerDatabase(url)) as database:
        yield database


def change(database: ServerDatabase, statement: object) -> None:
    with database.writing() as connection:
        connection.execute(statement)  # type: ignore[call-overload]


def test_writing_is_allowed_until_shortly_before_the_end_of_the_lease(
    database: ServerDatabase,
) -> None:
    clock = Clock()
    executor = LeasedExecutor(database, clock=clock)
    executor.register()
    clock.now += LEASE_SECONDS * (1 - 1 / HEARTBEATS) - 0.1
    executor.require_valid()
    clock.now += 0.1
    assert not executor.is_valid
    clock.now -= 5
    assert not executor.is_valid and not executor.renew(), "a late answer does not revive it"


def test_an_executor_is_dead_when_its_lease_has_ended_or_was_never_given(
    database: ServerDatabase,
) -> None:
    dead, alive, here = (LeasedExecutor(database, clock=Clock()) for _ in range(3))
    for executor in (dead, alive, here):
        executor.register()
    ended = update(EXECUTORS).where(EXECUTORS.c.id == dead.id).values(lease_until=1.0)
    change(database, ended)
    assert here.find_dead({dead.id, alive.id, here.id, "unknown"}) == {dead.id, "unknown"}
    assert not dead.renew() and not dead.is_valid
    assert alive.renew() and alive.is_valid


def test_a_heartbeat_that_finds_its_lease_taken_ends_the_executor(
    database: ServerDatabase,
) -> None:
    executor = LeasedExecutor(database, lease=1.5)
    executor.register()
    lost = threading.Event()
    threading.Thread(target=executor.keep_lease, args=(lost.set,), daemon=True).start()
    change(database, text("DELETE FROM resolver_executors"))
    assert lost.wait(120)
    assert not executor.is_valid


def test_a_process_that_ends_during_a_heartbeat_does_not_start_again(
    database: ServerDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = LeasedExecutor(database, lease=0.1)
    executor.register()
    renew = executor.renew

    def renew_while_ending() -> bool:
        executor.end()
        return renew()

    monkeypatch.setattr(executor, "renew", renew_while_ending)
    lost: list[bool] = []
    executor.keep_lease(lambda: lost.append(True))
    assert not lost


def test_a_process_whose_lease_is_lost_replaces_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only that ends its runs, which are in threads and go on in other processes."""
    programs: list[tuple[Any, ...]] = []
    monkeypatch.setattr(os, "execv", lambda *program: programs.append(program))
    monkeypatch.setattr(logging, "shutdown", lambda: None)
    tasks: dict[str, Callable[[], None]] = {}
    process: Any = SimpleNamespace(
        threads=SimpleNamespace(start=tasks.__setitem__),
        worker=SimpleNamespace(start=lambda: None, look_forever=None),
        _executor=SimpleNamespace(keep_lease=lambda on_lost: on_lost()),
        _remove_daily=None,
    )
    ServerProcess.start(process)
    tasks["heartbeat"]()
    assert programs == [(sys.executable, sys.orig_argv)]


def test_in_sqlite_there_is_one_executor_whose_lease_never_ends(tmp_path: Path) -> None:
    url: URL = parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
    clock = Clock()
    with closing(ServerDatabase(url)) as database:
        before, after = (LeasedExecutor(database, clock=clock) for _ in range(2))
        before.register()
        clock.now += 10 * LEASE_SECONDS
        assert before.renew() and before.is_valid
        after.register()
        assert after.find_dead({before.id, after.id}) == {before.id}
