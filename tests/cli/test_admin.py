"""`resolver admin` on a database of SQLite."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from resolver.cli.main import run
from resolver.config.run_settings import MIN_RETENTION, CostQuotas
from resolver.controller.control import Control, Stop
from resolver.entrypoints.webhook.active_runs import ActiveRuns
from resolver.entrypoints.webhook.admin import OPERATOR
from resolver.entrypoints.webhook.commands import CommentCommands
from resolver.entrypoints.webhook.folder_sweep import FolderSweep
from resolver.entrypoints.webhook.page_links import operator_url
from resolver.entrypoints.webhook.request_queue import NewRequest, RequestKind
from resolver.entrypoints.webhook.request_runner import RequestRunner
from resolver.entrypoints.webhook.request_table import REQUESTS
from resolver.entrypoints.webhook.sql_request_queue import SqlRequestQueue
from resolver.entrypoints.webhook.stored_app import store_app
from resolver.models.run import Actor, Trigger, TriggerKind
from resolver.runs.common import run_id
from resolver.runs.output import REQUEST
from resolver.storage.costs import SpendingLedger
from resolver.storage.database import ServerDatabase, parse_database_url
from resolver.storage.issue_history import IssueHistories
from resolver.storage.run_archive import FILES
from resolver.storage.run_store import OUTCOME
from tests.parts.github import GitHubServer
from tests.webhook.test_app_setup import CREDENTIALS

NOW = datetime.now(UTC)


def request(number: int, at: datetime = NOW, repository: str = "octo/calc") -> NewRequest:
    trigger = Trigger(
        key=f"{repository}#{number}",
        kind=TriggerKind.ISSUE_COMMENT,
        repository=repository,
        number=number,
        actor=Actor(login="mona"),
        at=at,
    )
    return NewRequest(f"request-{number}", RequestKind.RUN, trigger)


def run_of(asked: NewRequest) -> str:
    return run_id(asked.trigger.key, asked.trigger.at)


def runs_of(histories: IssueHistories, trigger: Trigger) -> list[str]:
    assert trigger.number is not None
    return histories.runs(trigger.repository, trigger.number)


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

    def archive(self, *runs: str, blob: str = "") -> None:
        """Let each of the runs have a file in the database, or in the object store."""
        row = {"name": OUTCOME, "size": 2, "digest": "", "changed": 0.0, "blob": blob}
        with self.database.writing() as connection:
            connection.execute(insert(FILES), [row | {"run": run} for run in runs])

    def archived(self) -> set[str]:
        with self.database.reading() as connection:
            return set(connection.scalars(select(FILES.c.run)))

    def ids(self) -> set[str]:
        with self.database.reading() as connection:
            return set(connection.scalars(select(REQUESTS.c.id)))

    def run_folder(
        self, name: str, age: timedelta, ended: bool = True, repository: str = "octo/calc"
    ) -> Path:
        folder = self.folder / "runs" / name
        folder.mkdir(parents=True)
        (folder / "events.jsonl").write_text("{}\n")
        (folder / REQUEST).write_text(json.dumps({"trigger": {"repository": repository}}))
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
    """A request that an outage has deferred for 20 minutes, after three crashes."""
    asked = request(2)
    admin.queue.add(asked)
    [claimed] = admin.queue.claim(RequestKind.RUN, 1, NOW)
    admin.queue.start(claimed.id, claimed.claim)
    admin.queue.defer(claimed.id, claimed.claim, NOW + timedelta(minutes=20), NOW)
    admin.change(asked, crashes=3)
    return asked


def test_the_requests_are_listed_with_their_runs(admin: Admin) -> None:
    assert "no such requests" in admin.text("runs")
    admin.finish(request(1))
    later = deferred(admin)
    text = admin.text("runs")
    assert f"deferred  {run_of(later)}" in text and "crashes: 3, outages: 1" in text
    assert [run["state"] for run in admin.json("runs")] == ["deferred", "done"]
    assert [run["number"] for run in admin.json("runs", "--state", "open")] == [2]
    assert [run["number"] for run in admin.json("runs", "--state", "done")] == [1]
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


def test_an_active_run_gets_a_stop_as_by_a_comment(admin: Admin, tmp_path: Path) -> None:
    asked = request(3)
    admin.queue.add(asked)
    admin.queue.claim(RequestKind.RUN, 1, NOW)
    assert "was working and is stopping now" in admin.text("cancel", run_of(asked))
    assert admin.json("cancel", asked.id)["state"] == "stopping"
    [command] = admin.queue.claim(RequestKind.COMMAND, 4, NOW)  # a second one would be here too
    active, histories, control = ActiveRuns(), IssueHistories(admin.url), Control()
    active.register(asked.trigger, control)
    runs = RequestRunner(admin.environment, {}, tmp_path, histories, active)
    assert CommentCommands(runs).execute(command.trigger, lambda _: ()) is None
    assert control.take() == Stop(by=OPERATOR)
    # a run that is between two attempts finds the stop when it is resumed
    assert histories.stop_after(asked.trigger) == OPERATOR
    histories.close()


def test_an_active_command_can_not_be_cancelled(admin: Admin) -> None:
    asked = replace(request(3), kind=RequestKind.COMMAND)
    admin.queue.add(asked)
    admin.queue.claim(RequestKind.COMMAND, 1, NOW)
    assert "request-3 is working, not waiting" in admin.text("cancel", asked.id, code=2)


def test_the_link_to_the_list_of_runs_is_that_of_the_server(admin: Admin, tmp_path: Path) -> None:
    assert "RESOLVER_PUBLIC_URL" in admin.text("pages-link", code=2)
    (tmp_path / "runs").mkdir()
    store_app(
        tmp_path / "runs",
        CREDENTIALS,
    )
    admin.environment["RESOLVER_PUBLIC_URL"] = "https://resolver.example.org"
    url = admin.text("pages-link").strip()
    assert url == operator_url("https://resolver.example.org", "hook-canary")
    assert admin.json("pages-link") == {"url": url}


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
    admin.archive(removed.name, run_of(waiting), run_of(request(2)))
    options = ("purge", "--older-than", "30d")
    planned = admin.json(*options, "--dry-run")
    assert (planned["requests"], planned["folders"]) == (1, 1)
    assert planned["rows"]["resolver_run_files"] == 1
    assert removed.exists() and len(admin.ids()) == 3
    assert admin.json(*options) == planned | {"dry_run": False}
    assert not removed.exists() and all(folder.exists() for folder in kept)
    assert admin.ids() == {"request-2", "request-3"}
    assert admin.archived() == {run_of(waiting), run_of(request(2))}


def test_old_runs_of_one_owner_are_purged(admin: Admin) -> None:
    admin.finish(request(1), timedelta(days=31))
    options = ("purge", "--older-than", "30d", "--owner")
    assert admin.json(*options, "oct")["requests"] == 0
    assert admin.json(*options, "Octo")["requests"] == 1
    assert "login of an account" in admin.text(*options, "octo/calc", code=2)
    assert admin.json(*options, "octo")["requests"] == 0
    wrong = admin.text("purge", "--repository", "octo/calc", "--owner", "octo", code=2)
    assert "--older-than 30d --owner LOGIN" in wrong


def test_without_an_age_the_retention_of_each_owner_counts(admin: Admin, tmp_path: Path) -> None:
    owners = tmp_path / "owners.yml"
    owners.write_text(
        "Brief: {retention: 2w}\nlong: {retention: 90d}\nforever: {retention: ''}\nplain: {}\n"
    )
    names = ("brief", "long", "forever", "plain", "octo")
    for number, name in enumerate(names):
        for age in (20, 40, 100):
            asked = request(1000 * number + age, NOW - timedelta(days=age), f"{name}/calc")
            admin.finish(asked, timedelta(days=age))
    admin.environment["RESOLVER_OWNERS_FILE"] = str(owners)
    assert "retention" in admin.text("purge", "--owner", "octo", code=2).lower()
    assert admin.json("purge", "--owner", "Brief", "--dry-run")["requests"] == 3
    admin.environment["RESOLVER_RETENTION"] = "30d"
    planned = admin.json("purge", "--dry-run")
    assert planned["requests"] == 3 + 1 + 0 + 2 + 2
    assert admin.json("purge") == planned | {"dry_run": False}
    left = {"request-1020", "request-1040", "request-2020", "request-2040", "request-2100"}
    assert admin.ids() == left | {"request-3020", "request-4020"}
    admin.environment["RESOLVER_OWNERS_FILE"] = ""
    assert admin.json("purge")["requests"] == 1 + 2, "all owners alike"


@pytest.mark.parametrize("text", ["30", "d", "-4d", "0d", "3d", "1 d", "4D", "123456d"])
def test_a_retention_that_is_no_age_or_too_short_is_refused(admin: Admin, text: str) -> None:
    admin.environment["RESOLVER_RETENTION"] = text
    assert "RESOLVER_RETENTION" in admin.text("purge", code=2)


def test_the_history_of_old_runs_is_purged(admin: Admin) -> None:
    old = timedelta(days=31)
    histories = IssueHistories(admin.url)
    waiting, done, fresh = request(1, NOW - old), request(2, NOW - old), request(3)
    admin.queue.add(waiting)
    for queued, pull in ((waiting, 91), (done, 92), (fresh, 93)):
        histories.record_run(queued.trigger, run_of(queued))
        histories.record_pull_request(queued.trigger, pull)
        histories.record_stop(queued.trigger)
    before = admin.json("purge", "--older-than", "30d", "--dry-run")
    assert before["rows"]["resolver_issue_history"] == 3
    assert admin.json("purge", "--older-than", "30d")["rows"] == before["rows"]
    assert [runs_of(histories, queued.trigger) for queued in (waiting, done, fresh)] == [
        [run_of(waiting)],
        [],
        [run_of(fresh)],
    ]
    assert [histories.issue_of("octo/calc", pull) for pull in (91, 92, 93)] == [1, None, 3]
    asked_before = waiting.trigger.model_copy(update={"at": NOW - 2 * old})
    assert histories.stop_after(asked_before) == "mona"
    histories.close()


def test_everything_of_a_repository_is_purged_and_nothing_of_another(admin: Admin) -> None:
    admin.finish(request(1))
    run = run_of(request(1))
    other = run_of(request(1, NOW - timedelta(days=1)))
    histories = IssueHistories(admin.url)
    ledger = SpendingLedger(admin.url)
    other_trigger = request(9).trigger.model_copy(update={"repository": "octo/calc2"})
    for trigger, stored_run in ((request(1).trigger, run), (other_trigger, other)):
        histories.record_run(trigger, stored_run)
        ledger.record_cost(stored_run, trigger.repository, 1.0, 0, NOW)
    admin.archive(run, other)
    folders = [
        admin.run_folder(run, timedelta(0)),
        admin.run_folder("20260101-000000-bbbbbb", timedelta(0), ended=False),
        admin.run_folder(other, timedelta(0), repository="octo/calc2"),
    ]
    admin.queue.add(request(2))
    assert "1 requests of octo/calc are not done" in admin.text(
        "purge", "--repository", "octo/calc", code=2
    )
    admin.json("cancel", "request-2")
    planned = admin.json("purge", "--repository", "Octo/Calc", "--dry-run")
    purged = admin.json("purge", "--repository", "Octo/Calc")
    assert purged == planned | {"dry_run": False}
    assert (purged["requests"], purged["folders"]) == (2, 2)
    assert [folder.exists() for folder in folders] == [False, False, True]
    assert admin.archived() == {other} and admin.ids() == set()
    assert runs_of(histories, request(1).trigger) == [] and runs_of(histories, other_trigger) == [
        other
    ]
    assert [total.repository for total in ledger.totals(NOW)] == ["octo/calc2"]
    for store in (histories, ledger):
        store.close()


def test_each_machine_removes_the_folders_of_purged_runs(admin: Admin) -> None:
    old = timedelta(days=31)
    machine = admin.folder
    waiting = request(3, NOW - old)
    admin.queue.add(waiting)
    names = ("20260101-000000-aaaaaa", run_of(waiting), run_of(request(4)))
    removed, kept, young = (
        admin.run_folder(name, age) for name, age in zip(names, (old, old, NOW - NOW), strict=True)
    )
    sweep = FolderSweep(admin.url, machine / "runs")
    assert sweep.sweep() == 0, "nothing was purged"
    admin.environment["RESOLVER_DATA_DIR"] = str(machine / "elsewhere")
    assert admin.json("purge", "--older-than", "30d")["folders"] == 0
    assert sweep.sweep() == 1
    assert [folder.exists() for folder in (removed, kept, young)] == [False, True, True]
    admin.json("cancel", waiting.id)
    admin.json("purge", "--repository", "octo/calc")
    assert sweep.sweep() == 2 and sweep.sweep() == 0


def test_objects_are_not_left_behind_by_a_purge_without_their_store(admin: Admin) -> None:
    run = "20260101-000000-aaaaaa"
    admin.archive(run, blob=f"{run}/digest")
    assert "set RESOLVER_BLOB_STORE" in admin.text("purge", "--older-than", "30d", code=2)
    assert admin.archived() == {run}
    assert "give --older-than or --repository" in admin.text("purge", code=2)


def test_requests_of_unknown_age_count_from_the_first_purge_on(admin: Admin) -> None:
    admin.finish(request(1))
    admin.change(request(1), finished_at=0)
    assert "0 finished requests" in admin.text("purge", "--older-than", "1w")
    [row] = admin.json("runs")
    assert row["finished_at"] is not None


def test_a_redelivery_must_find_its_request(admin: Admin) -> None:
    assert timedelta(days=3) < MIN_RETENTION
    assert "redelivers" in admin.text("purge", "--older-than", "3d", code=2)
    assert "is not an age" in admin.text("purge", "--older-than", "soon", code=2)


def test_the_use_of_quotas_is_shown(admin: Admin) -> None:
    ledger = SpendingLedger(admin.url)
    ledger.reserve("run", "octo/calc", 2.0, CostQuotas(), datetime.now(UTC), 1)
    ledger.close()
    admin.environment["RESOLVER_COST_QUOTAS"] = "{repository_month: 5, server_day: 9}"
    usage = admin.json("quotas")
    [row] = usage["month"]
    assert (row["repository"], row["limit"], row["left"]) == ("octo/calc", 5.0, 3.0)
    assert usage["today"] == {"cost": 0.0, "limit": 9.0}
    assert usage["owners"] == []
    assert "of $5.00 this month, $2.00 reserved" in admin.text("quotas")


def test_the_use_of_an_owners_quota_is_that_of_all_its_repositories(
    admin: Admin, tmp_path: Path
) -> None:
    ledger, now = SpendingLedger(admin.url), datetime.now(UTC)
    for number, repository in enumerate(("octo/calc", "octo/other", "acme/site")):
        ledger.record_cost(str(number), repository, 2.5, 1, now)
    ledger.close()
    owners = tmp_path / "owners.yml"
    owners.write_text("Octo: {cost_quotas: {owner_month: 20, repository_month: 4}}\n")
    admin.environment["RESOLVER_OWNERS_FILE"] = str(owners)
    admin.environment["RESOLVER_COST_QUOTAS"] = "{owner_month: 6}"
    usage = admin.json("quotas", "--repository", "octo/calc")
    [owner], [row] = usage["owners"], usage["month"]
    assert (owner["owner"], owner["runs"], owner["cost"]) == ("octo", 2, 5.0)
    assert (owner["limit"], owner["left"], owner["unpriced_replies"]) == (20.0, 15.0, 2)
    assert (row["repository"], row["cost"], row["limit"]) == ("octo/calc", 2.5, 4.0)
    text = admin.text("quotas")
    assert re.search(r"^acme +\$2.50 of \$6.00 this month, 1 replies of unknown price$", text, re.M)
    assert re.search(r"^octo +\$5.00 of \$20.00 this month", text, re.M)
    assert re.search(r"^acme/site +\$2.50 of no limit this month", text, re.M)


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


def test_no_database_is_created_where_there_is_none(admin: Admin, tmp_path: Path) -> None:
    admin.environment["RESOLVER_DATABASE_URL"] = f"sqlite:///{tmp_path}/new.db"
    assert "there is no database" in admin.text("runs", code=2)
    assert not (tmp_path / "new.db").exists()


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
    assert [executor["draining"] for executor in admin.json("executors")] == [False, True]
    assert "2 executors start nothing more" in admin.text("drain")
    assert "2 executors start requests again" in admin.text("resume")
    assert [executor["draining"] for executor in admin.json("executors")] == [False, False]
    assert "there is no executor third" in admin.text("resume", "third", code=2)
