"""What is removed because of its age, on each database, and what is kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import pytest
from sqlalchemy import URL, select, text

from resolver.entrypoints.webhook.request_queue import QueuedRequest, RequestKind, RequestQueue
from resolver.entrypoints.webhook.retention import RETENTION_DAYS, remove_old
from resolver.events.actions import Think
from resolver.models.run import Actor, Trigger, TriggerKind
from resolver.runs.common import run_id
from resolver.storage.database import ServerDatabase
from resolver.storage.quota_table import COSTS, QuotaTable
from resolver.storage.run_index import RUNS, RunIndex
from tests.github.events.ledgers import ended
from tests.parts.stored_runs import runs_in, stored_in, write_run

NOW = datetime(2026, 3, 2, tzinfo=UTC)
OLD, YOUNG = timedelta(days=RETENTION_DAYS + 1), timedelta(days=RETENTION_DAYS - 1)


def request(number: int, age: timedelta) -> QueuedRequest:
    trigger = Trigger(
        key=f"octo/calc#{number}",
        kind=TriggerKind.ISSUE_COMMENT,
        repository="Octo/Calc",
        number=number,
        actor=Actor(login="mona"),
        at=NOW - age,
    )
    return QueuedRequest(f"request-{number}", RequestKind.RUN, trigger)


def run_of(asked: QueuedRequest) -> str:
    return run_id(asked.trigger.key, asked.trigger.at)


@dataclass
class Stores:
    """Everything that a server with this database stores."""

    url: URL
    folder: Path
    time: datetime = NOW

    def __post_init__(self) -> None:
        self.database = ServerDatabase(self.url)
        self.queue = RequestQueue(self.database)
        self.store, self.table = stored_in(self.folder), QuotaTable(self.database)
        self.index = RunIndex(self.database, lambda: self.time)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.queue.close()
        self.database.close()

    def store_run(self, asked: QueuedRequest, done: bool = True) -> str:
        """Store a request with its run, and a row or file of it wherever there can be one."""
        run, repository = run_of(asked), asked.trigger.repository
        self.time = asked.trigger.at
        assert self.queue.add(asked)
        if done:
            self.queue.cancel(asked.id)
        schema = "" if self.url.get_backend_name() == "sqlite" else "dbos."
        column = "completed_at" if done else "created_at"
        with self.database.writing() as connection:
            values = {"time": self.time.timestamp() * 1000, "id": asked.id}
            connection.execute(
                text(
                    f"UPDATE {schema}workflow_status SET {column} = :time WHERE workflow_uuid = :id"
                ),
                values,
            )
        write_run(self.store, run, [Think(id=0, content="a")], ended=True)
        self.index.put(run, asked.trigger, {})
        entry = ended(int(run[-6:], 16) % 10**6, at=self.time)
        self.table.change(repository, self.time, lambda ledger: (ledger.with_run(entry), None))
        return run

    def remove_old(self) -> None:
        remove_old(self.database, self.queue, self.store, NOW)

    def runs(self) -> list[set[str]]:
        """Return the runs that are indexed, and those that are stored."""
        with self.database.reading() as connection:
            indexed = set(connection.scalars(select(RUNS.c.run)))
        return [indexed, set(runs_in(self.folder))]

    def requests(self) -> set[str]:
        return {request.id for request in self.queue.recent()}


@pytest.fixture
def stores(database_url: URL, tmp_path: Path) -> Iterator[Stores]:
    with Stores(database_url, tmp_path / "runs") as stores:
        yield stores


def test_what_is_old_is_removed_and_nothing_of_an_open_request(stores: Stores) -> None:
    old, young, waiting = request(1, OLD), request(2, YOUNG), request(3, OLD)
    stores.store_run(old)
    kept = {stores.store_run(young), stores.store_run(waiting, done=False)}
    others = {"tmp", "20250101-000001-abcdeX", "github-app.json"}
    for name in others:
        (stores.folder / name).mkdir()
    stores.remove_old()
    assert stores.runs() == [kept] * 2
    assert stores.requests() == {young.id, waiting.id}
    assert {path.name for path in stores.folder.iterdir()} == kept | others
    assert stores.index.runs_of("octo/calc", 1) == []
    assert stores.index.runs_of("octo/calc", 2) == [run_of(young)]
    assert stores.index.runs_of("octo/calc", 3) == [run_of(waiting)]
    with stores.database.reading() as connection:
        assert len(connection.execute(select(COSTS)).all()) == 3, "costs are kept"
    stores.remove_old()
    assert stores.runs() == [kept] * 2


def test_only_old_requests_are_read(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = request(1, OLD), request(2, timedelta(days=1))
    for asked in (old, new):
        stores.store_run(asked, done=False)
    read: list[str] = []
    unfinished = stores.queue.unfinished

    def spy(before: datetime | None = None) -> Sequence[QueuedRequest]:
        found = unfinished(before)
        read.extend(request.id for request in found)
        return found

    monkeypatch.setattr(stores.queue, "unfinished", spy)
    stores.remove_old()
    assert read == [old.id], "a start with many waiting requests must not read them all"
