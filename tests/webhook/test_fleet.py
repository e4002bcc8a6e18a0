"""Several processes on one PostgreSQL: one that only accepts deliveries, and two workers."""

import re
import signal
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.postgres import Postgres
from tests.parts.runs import INSTALLED_RESOLVER, RESOLVER
from tests.parts.waiting import PATIENCE_SECONDS, until
from tests.webhook.serving import Forge, Plans, Server, plan_of_a_fix

LEASE_SECONDS = "4"


class HeldPlans(Plans):
    """Plans of a fix. The first request for each plan gets its answer when the test says so."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self.released = threading.Event()
        super().__init__(endpoint)

    def _answer(self, body: dict[str, object]) -> Answer:
        name = re.search(r"plan-(\w+)", str(body["messages"]))
        is_first = name is not None and not self.times(name[1])
        answer = super()._answer(body)
        if is_first:
            self.released.wait(PATIENCE_SECONDS)
        return answer


class WorkerProcess:
    """`resolver worker` in a folder of its own, with the settings of a server."""

    def __init__(self, folder: Path, server: Server, program: Path) -> None:
        folder.mkdir()
        self.folder = folder
        with (folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [program, "worker"], env=server.environment, cwd=folder, stdout=log, stderr=log
            )

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def starts(self) -> int:
        """How often it has started to work."""
        return self.log.count("works for postgresql://")

    def files(self) -> dict[str, bytes]:
        """What the event logs and outcomes of its runs hold."""
        found = sorted((self.folder / "resolver-runs").glob("*/*.json*"))
        return {path.name: path.read_bytes() for path in found}

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def close(self) -> None:
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                self.end(signal.SIGKILL)


class Scenario:
    """A server that accepts deliveries only, and its workers."""

    def __init__(
        self, folder: Path, postgres: Postgres, github: GitHubServer, endpoint: ModelEndpoint
    ) -> None:
        name = f"fleet_{uuid.uuid4().hex}"
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        url = make_url(postgres.url).set(database=name).render_as_string(hide_password=False)
        self.folder, self.forge, self.plans = folder, Forge(github), HeldPlans(endpoint)
        self.repository = self.forge.repository("octo/calc")
        (folder / "serve").mkdir()
        more = {"RESOLVER_DATABASE_URL": url, "TEST_LEASE_SECONDS": LEASE_SECONDS}
        self.server = Server(folder / "serve", self.forge, endpoint, **more)
        self.workers: list[WorkerProcess] = []

    def add_worker(self, program: Path = RESOLVER) -> WorkerProcess:
        worker = WorkerProcess(self.folder / f"worker-{len(self.workers)}", self.server, program)
        self.workers.append(worker)
        return worker

    def ask(self, plan: str) -> Issue:
        """Ask for a run, and wait until it waits for its model."""
        self.plans.released.clear()
        self.plans.add(plan, *plan_of_a_fix())
        issue = self.forge.issue(self.repository, plan)
        assert self.server.deliver(self.forge.mention(issue)) == (202, "stored")
        until(lambda: self.plans.times(plan))
        return issue

    def is_done(self, issue: Issue) -> bool:
        """One final comment and no other, and one pull request, once the run has ended."""
        comments = self.forge.own_comments(issue)
        pulls = [p for p in self.forge.pulls(issue.repository) if f"#{issue.number}" in p.body]
        assert max(len(comments), len(pulls)) <= 1, [c.body for c in comments]
        return len(self.forge.final_comments(issue)) == len(pulls) == 1

    def close(self) -> None:
        self.plans.released.set()
        self.server.close()
        for worker in self.workers:
            worker.close()


@pytest.fixture
def scenario(
    tmp_path: Path, postgres: Postgres, github: GitHubServer, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    made = Scenario(tmp_path, postgres, github, model_endpoint)
    yield made
    made.close()


def test_a_suspended_worker_writes_nothing_more_and_those_that_die_are_replaced(
    scenario: Scenario,
) -> None:
    scenario.server.start("--concurrency", "0")
    # a process of its own, which can be suspended and can replace its program
    suspended = scenario.add_worker(INSTALLED_RESOLVER)
    first = scenario.ask("first")
    suspended.process.send_signal(signal.SIGSTOP)
    written = suspended.files()
    replacement = scenario.add_worker()
    until(lambda: scenario.is_done(first))
    scenario.plans.released.set()  # the answer is there when the suspended worker wakes up
    suspended.process.send_signal(signal.SIGCONT)
    until(lambda: suspended.starts == 2)
    assert "could not renew its lease" in suspended.log
    assert suspended.files() == written
    assert scenario.is_done(first)

    second = scenario.ask("second")
    workers = {worker for worker in scenario.workers if f"octo/calc#{second.number}," in worker.log}
    [dying] = workers
    dying.end(signal.SIGKILL)
    until(lambda: scenario.is_done(second))

    third = scenario.ask("third")
    [ending] = {suspended, replacement} - workers
    assert ending.end(signal.SIGTERM) == 0
    [comment] = scenario.forge.own_comments(third)
    assert "its run pauses" in comment.body
    scenario.add_worker()
    until(lambda: scenario.is_done(third))
    assert len(scenario.forge.branches(third.repository)) == 3
    for worker in scenario.workers:
        assert "Traceback" not in worker.log, worker.log
