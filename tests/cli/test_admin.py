"""`resolver admin` on a database of SQLite."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table, select, update

from resolver.cli.main import run
from resolver.entrypoints.webhook.admin import MIN_AGE
from resolver.entrypoints.webhook.costs import SpendingBounds, SpendingLedger
from resolver.entrypoints.webhook.database import ServerDatabase, parse_database_url
from resolver.entrypoints.webhook.request_queue import NewRequest, RequestKind
from resolver.entrypoints.webhook.request_table import REQUESTS
from resolver.entrypoints.webhook.schema import known_revisions
from resolver.entrypoints.webhook.sql_request_queue import SqlRequestQueue
from resolver.models.run import Actor, Trigger, TriggerKind
from resolver.runs.common import run_id
from resolver.runs.output import OUTCOME
from tests.parts.github import GitHubServer

NOW = datetime.now(UTC)
ARCHIVE = Table(
    "resolver_run_files", MetaData(), Column("run", String(200)), Column("size", Integer)
)
"""A table of runs, as far as the purge knows it."""


def request(number: int, at: datetime = NOW) -> NewRequest:
    trigger = Trigger(
        key=f"octo/calc#{number}",
        kind=TriggerKind.ISSUE_COMMENT,
        repository="octo/calc",
        number=number,
        actor=Actor(login="mona"),
        at=at,
    )
    return NewRequest(f"request-{number}", RequestKind.RUN, trigger)


def run_of(asked: NewRequest) -> str:
    return run_id(asked.trigger.key, asked.trigger.at)


class Admin:
    """The command, with the queue of a server in `folder`."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.environment = {
            "RESOLVER_DATABASE_URL": f"sqlite:///{folder}/resolver.db",
            "RESOLVER_DATA_DIR": str(folder / "runs"),
        }
        self.url = parse_database_url(self.environment["RESOLVER_DATABASE_URL"])
        self.queue = SqlRequestQueue(self.url)
        self.database = ServerDatabase(self.url)

    def text(self, *args: str, code: int = 0) -> str:
        assert run(["admin", *args], self.environment) == code
        shown = self._capsys.readouterr()
        return shown.out if code == 0 else shown.err

    def json(self, *args: str) -> Any:
        return json.loads(self.text(*args, "--json"))

    def finish(self, asked: NewRequest, age: timedelta = timedelta(0)) -> None:
        """Let the request be done that long ago."""
        self.queue.add(asked)
        [claimed] = self.queue.claim(RequestKind.RUN, 1, NOW)
        self.queue.start(claimed.id, claimed.claim)
        self.queue.finish(claimed.id, claimed.claim)
        self.change(asked, finished_at=(NOW - age).timestamp())

    def change(self, asked: NewRequest, **values: object) -> None:
        with self.database.writing() as connection:
            connection.execute(update(REQUESTS).where(REQUESTS.c.id == asked.id).values(**values))

    def ids(self) -> set[str]:
        with self.database.reading() as connection:
            return set(connection.scalars(select(REQUESTS.c.id)))

    def run_folder(self, name: str, age: timedelta, ended: bool = True) -> Path:
        folder = self.folder / "runs" / name
        folder.mkdir(parents=True)
        (folder / "events.jsonl").write_text("{}\n")
        if ended:
            (folder / OUTCOME).write_text("{}")
            os.utime(folder / OUTCOME, ((NOW - age).timestamp(),) * 2)
        return folder


@pytest.fixture
def admin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Admin]:
    made = Admin(tmp_path, capsys)
    yield made
    made.queue.close()
    made.database.close()


def deferred(admin: Admin) -> NewRequest:
    """A request that an outage has deferred for an hour, after three crashes."""
    asked = request(2)
    admin.queue.add(asked)
    [claimed] = admin.queue.claim(RequestKind.RUN, 1, NOW)
    admin.queue.start(claimed.id, claimed.claim)
    admin.queue.defer(claimed.id, claimed.claim, NOW + timedelta(hours=1), NOW)
    admin.change(asked, crashes=3)
    return asked


def test_the_requests_are_listed_with_their_runs(admin: Admin) -> None:
    assert "no such requests" in admin.text("runs")
    admin.finish(request(1))
    later = deferred(admin)
    text = admin.text("runs")
    assert f"deferred  {run_of(later)}" in text and "crashes: 3, outages: 1" in text
    assert [each["state"] for each in admin.json("runs")] == ["deferred", "done"]
    assert [each["number"] for each in admin.json("runs", "--state", "open")] == [2]
    assert [each["number"] for each in admin.json("runs", "--state", "done")] == [1]
    assert admin.json("runs", "--repository", "OCTO/Calc", "--limit", "1")[0]["run"] == run_of(
        later
    )
    assert admin.json("runs", "--repository", "octo/other") == []


def test_a_deferred_request_can_start_at_once(admin: Admin) -> None:
    asked = deferred(admin)
    assert "was deferred and is waiting now" in admin.text("requeue", run_of(asked))
    [claimed] = admin.queue.claim(RequestKind.RUN, 1, NOW)
    started = admin.queue.start(claimed.id, claimed.claim)
    assert started is not None and (started.crashes, started.outages) == (0, 0)
    assert "request-2 is working, not deferred" in admin.text("requeue", asked.id, code=2)


def test_a_waiting_request_is_ended(admin: Admin) -> None:
    asked = request(3)
    admin.queue.add(asked)
    assert admin.json("cancel", asked.id)["state"] == "done"
    assert admin.queue.claim(RequestKind.RUN, 1, NOW) == []
    assert not admin.queue.add(asked)  # a redelivery finds it
    assert "ask again in the conversation" in admin.text("cancel", asked.id, code=2)
    assert "no open request has the id" in admin.text("cancel", run_of(asked), code=2)


def test_an_active_run_is_not_ended_behind_its_back(admin: Admin) -> None:
    admin.queue.add(request(3))
    admin.queue.claim(RequestKind.RUN, 1, NOW)
    assert "@agent stop" in admin.text("cancel", "request-3", code=2)


def test_old_runs_are_purged_and_nothing_of_an_open_request(admin: Admin) -> None:
    old, young = timedelta(days=31), timedelta(days=5)
    admin.finish(request(1), old)
    admin.finish(request(2), young)
    waiting = request(3, NOW - old)
    admin.queue.add(waiting)
    removed = admin.run_folder(run_of(request(1, NOW - old)), old)
    kept = [
        admin.run_folder(run_of(request(2)), young),
        admin.run_folder(run_of(waiting), old),
        admin.run_folder("20260101-000000-aaaaaa", old, ended=False),
        admin.run_folder("tmp", old),
    ]
    with admin.database.writing() as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS resolver_run_files")
        ARCHIVE.create(connection)
        for each in (removed.name, run_of(waiting), run_of(request(2))):
            connection.execute(ARCHIVE.insert().values(run=each, size=1))
    options = ("purge", "--older-than", "30d")
    planned = admin.json(*options, "--dry-run")
    assert (planned["requests"], planned["folders"]) == (1, 1)
    assert planned["rows"]["resolver_run_files"] == 1
    assert removed.exists() and len(admin.ids()) == 3
    assert admin.json(*options) == planned | {"dry_run": False}
    assert not removed.exists() and all(each.exists() for each in kept)
    assert admin.ids() == {"request-2", "request-3"}
    with admin.database.reading() as connection:
        left = set(connection.scalars(select(ARCHIVE.c.run)))
    assert left == {run_of(waiting), run_of(request(2))}


def test_requests_of_unknown_age_count_from_the_first_purge_on(admin: Admin) -> None:
    admin.finish(request(1))
    admin.change(request(1), finished_at=0)
    assert "0 finished requests" in admin.text("purge", "--older-than", "1w")
    [row] = admin.json("runs")
    assert row["finished_at"] is not None


def test_a_redelivery_must_find_its_request(admin: Admin) -> None:
    assert timedelta(days=3) < MIN_AGE
    assert "redelivers" in admin.text("purge", "--older-than", "3d", code=2)
    assert "is not an age" in admin.text("purge", "--older-than", "soon", code=2)


def test_the_use_of_quotas_is_shown(admin: Admin) -> None:
    ledger = SpendingLedger(admin.url)
    ledger.reserve("run", "octo/calc", 2.0, SpendingBounds(), datetime.now(UTC), 1)
    ledger.close()
    admin.environment["RESOLVER_COST_QUOTAS"] = "{repository_month: 5, server_day: 9}"
    usage = admin.json("quotas")
    [row] = usage["month"]
    assert (row["repository"], row["limit"], row["left"]) == ("octo/calc", 5.0, 3.0)
    assert usage["today"] == {"cost": 0.0, "limit": 9.0}
    assert "of $5.00 this month, $2.00 reserved" in admin.text("quotas")


def test_the_installations_of_the_app_are_listed(admin: Admin, github: GitHubServer) -> None:
    app = github.add_app("fixer")
    github.add_user("mona")
    app.installations["mona"] = app.installation_id
    admin.environment |= {
        "GITHUB_API_URL": github.api_url,
        "RESOLVER_APP_ID": str(app.id),
        "RESOLVER_APP_PRIVATE_KEY": app.private_key,
    }
    [row] = admin.json("installations")
    assert (row["account"], row["id"], row["suspended"]) == ("mona", app.installation_id, False)
    app.suspended = True
    assert "mona  (suspended)" in admin.text("installations")


def test_the_database_is_migrated_by_hand(admin: Admin, tmp_path: Path) -> None:
    admin.environment["RESOLVER_DATABASE_URL"] = f"sqlite:///{tmp_path}/new.db"
    assert "there is no database" in admin.text("runs", code=2)
    assert known_revisions()[-1] in admin.text("migrate")
    assert admin.json("runs") == []


def test_an_executor_is_drained_and_resumed(admin: Admin) -> None:
    assert "No process is registered" in admin.text("executors")
    assert "there is no executor" in admin.text("drain", code=2)
    with admin.database.writing() as connection:
        for id, host in (("first", "a"), ("second", "b")):
            connection.exec_driver_sql(
                "INSERT INTO resolver_executors "
                "(id, kind, host, version, slots, started_at, lease_until, draining) "
                f"VALUES ('{id}', 'worker', '{host}', '1.0', 2, {ord(host)}, 1, false)"
            )
    admin.queue.add(request(1))
    admin.queue.claim(RequestKind.RUN, 1, NOW)
    with admin.database.writing() as connection:
        connection.exec_driver_sql("UPDATE resolver_requests SET executor = 'second'")
    assert admin.json("drain", "second") == {"executors": 1, "draining": True}
    assert "worker on b, release 1.0: 1 of 2 runs, draining" in admin.text("executors")
    assert [each["draining"] for each in admin.json("executors")] == [False, True]
    assert "2 executors start nothing more" in admin.text("drain")
    assert "2 executors start requests again" in admin.text("resume")
    assert [each["draining"] for each in admin.json("executors")] == [False, False]
    assert "there is no executor third" in admin.text("resume", "third", code=2)
