"""What is removed because of its age, on each database, and what is kept."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from sqlalchemy import URL, select, text

from resolver.entrypoints.webhook.request_queue import QueuedRequest, RequestKind, RequestQueue
from resolver.entrypoints.webhook.retention import RETENTION_DAYS, remove_old
from resolver.events.actions import Think
from resolver.github.events.quota_ledger import QuotaLedger
from resolver.models.run import Actor, Trigger, TriggerKind
from resolver.storage.database import ServerDatabase
from resolver.storage.quota_table import COSTS, QuotaTable
from resolver.storage.run_index import RunIndex
from tests.github.events.ledgers import ended
from tests.parts.stored_runs import runs_in, stored_in, write_run

NOW = datetime(2026, 3, 2, tzinfo=UTC)
OLD, YOUNG = timedelta(days=RETENTION_DAYS + 1), timedelta(days=RETENTION_DAYS - 1)
OTHERS = {"tmp", "20250101-000001-abcdeX", "github-app.json"}


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


def test_what_is_old_is_removed_and_nothing_else(database_url: URL, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with (
        closing(ServerDatabase(database_url)) as database,
        closing(RequestQueue(database)) as queue,
    ):
        store, index = stored_in(folder), RunIndex(database, lambda: NOW)
        old, young, waiting = request(1, OLD), request(2, YOUNG), request(3, OLD)
        schema = "" if database_url.get_backend_name() == "sqlite" else "dbos."
        ending = f"UPDATE {schema}workflow_status SET completed_at = :at WHERE workflow_uuid = :id"
        for asked in (old, young, waiting):
            assert queue.add(asked)
        for number, asked in enumerate((old, young)):
            at, run = asked.trigger.at, asked.run or ""
            queue.cancel(asked.id)
            with database.writing() as connection:
                connection.execute(text(ending), {"at": at.timestamp() * 1000, "id": asked.id})
            write_run(store, run, [Think(id=0, content="a")], ended=True)
            index.put(run, asked.trigger, {})
            book = partial(QuotaLedger.with_run, run=ended(number, at=at))
            QuotaTable(database).change(
                "octo/calc", at, lambda found, book=book: (book(found), None)
            )
        for name in OTHERS:
            (folder / name).mkdir()
        for _ in range(2):
            remove_old(database, queue, store, NOW)
            assert runs_in(folder) == [young.run]
            assert {path.name for path in folder.iterdir()} == {young.run, *OTHERS}
            assert index.runs_of("octo/calc", 1) == []
            assert index.runs_of("octo/calc", 2) == [young.run]
            assert {found.id for found in queue.recent()} == {young.id, waiting.id}
        with database.reading() as connection:
            assert len(connection.execute(select(COSTS)).all()) == 2, "costs are kept"
