"""`resolver admin` on a database of SQLite."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from resolver.cli.main import run
from resolver.entrypoints.webhook.admin import OPERATOR
from resolver.entrypoints.webhook.request_queue import QueuedRequest, RequestKind, RequestQueue
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.runs.common import run_id
from resolver.storage.database import ServerDatabase, parse_database_url
from tests.webhook.test_request_queue import begin, finish

NOW = datetime.now(UTC)


def request(number: int, at: datetime = NOW, repository: str = "octo/calc") -> QueuedRequest:
    trigger = Trigger(
        key=f"{repository}#{number}",
        kind=TriggerKind.ISSUE_COMMENT,
        repository=repository,
        number=number,
        actor=Actor(login="mona"),
        at=at,
    )
    return QueuedRequest(f"request-{number}", RequestKind.RUN, trigger)


def run_of(asked: QueuedRequest) -> str:
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
        self.queue = RequestQueue(self.url)
        self.queue.configure(2)
        self.database = ServerDatabase(self.url)

    def text(self, *args: str, code: int = 0) -> str:
        assert run(["admin", *args], self.environment) == code
        shown = self._capsys.readouterr()
        return shown.out if code == 0 else shown.err

    def json(self, *args: str) -> Any:
        return json.loads(self.text(*args, "--json"))

    def finish(self, asked: QueuedRequest) -> None:
        """Let the request be done."""
        self.queue.add(asked)
        finish(self.queue, *begin(self.queue))


@pytest.fixture
def admin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Admin]:
    made = Admin(tmp_path, capsys)
    yield made
    made.queue.close()
    made.database.close()


def deferred(admin: Admin) -> QueuedRequest:
    """A request that an outage has deferred for 20 minutes."""
    asked = replace(request(2), outages=1, outage_began=NOW)
    admin.queue.add(asked, timedelta(minutes=20))
    return asked


def test_the_requests_are_listed_with_their_runs(admin: Admin) -> None:
    assert "no such requests" in admin.text("runs")
    admin.finish(request(1))
    later = deferred(admin)
    text = admin.text("runs")
    assert f"deferred  {run_of(later)}" in text and "outages: 1" in text
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
    assert [started.id for started in begin(admin.queue)] == [asked.id]
    assert "request-2 is working, not deferred" in admin.text("requeue", asked.id, code=2)


def test_a_waiting_request_is_ended(admin: Admin) -> None:
    asked = request(3)
    admin.queue.add(asked)
    assert admin.json("cancel", asked.id)["state"] == "done"
    assert begin(admin.queue) == []
    assert not admin.queue.add(asked)  # a redelivery finds it
    assert "ask again in the conversation" in admin.text("cancel", asked.id, code=2)
    assert "no open request has the id" in admin.text("cancel", run_of(asked), code=2)


def test_an_active_run_gets_a_stop_as_by_a_comment(admin: Admin) -> None:
    asked = request(3)
    admin.queue.add(asked)
    [working] = begin(admin.queue)
    assert "was working and is stopping now" in admin.text("cancel", run_of(asked))
    assert admin.json("cancel", asked.id)["state"] == "stopping"
    commands = admin.queue.take_commands(working.first_id)
    assert {(c.command, c.actor.login) for c in commands} == {(Command.STOP, OPERATOR)}
    assert len({command.key for command in commands}) == 1, "the run takes it once"
