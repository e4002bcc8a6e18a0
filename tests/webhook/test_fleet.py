"""Several processes on one PostgreSQL: one that only accepts deliveries, and two workers."""

import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from resolver.cli.main import run
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.postgres import Postgres
from tests.parts.runs import INSTALLED_RESOLVER, RESOLVER
from tests.parts.stored_runs import content_of, outcomes_in, runs_in, stored_in
from tests.parts.waiting import until
from tests.webhook.serving import Forge, HeldPlans, Server, WorkerProcess, plan_of_a_fix

LEASE_SECONDS = "4"
P = TypeVar("P", Server, WorkerProcess)


class Scenario:
    """A server that accepts deliveries only, and its workers."""

    def __init__(
        self, folder: Path, url: str, github: GitHubServer, endpoint: ModelEndpoint
    ) -> None:
        self.folder, self.forge, self.plans = folder, Forge(github), HeldPlans(endpoint)
        self.repository = self.forge.repository("octo/calc")
        (folder / "serve").mkdir()
        self.server = Server(folder / "serve", self.forge, endpoint, RESOLVER_DATABASE_URL=url)
        self.servers, self.workers = [self.server], list[WorkerProcess]()

    def add_worker(self, program: Path = RESOLVER) -> WorkerProcess:
        folder = self.folder / f"worker-{len(self.workers)}"
        worker = WorkerProcess(folder, self.server, program, "--lease-seconds", LEASE_SECONDS)
        self.workers.append(worker)
        return worker

    def add_server(self) -> Server:
        """A second server on the same database."""
        folder = self.folder / f"serve-{len(self.servers)}"
        folder.mkdir()
        server = Server(folder, self.forge, self.plans.endpoint)
        server.environment = self.server.environment
        self.servers.append(server)
        return server

    def executor_of(self, issue: Issue, among: Sequence[P]) -> P:
        """The one of these processes that has started a run of the issue."""
        start = f" starts for octo/calc#{issue.number}, "
        [found] = [process for process in among if start in process.log]
        return found

    def ask(self, plan: str, delivery: str = "") -> Issue:
        """Ask for a run, and wait until it waits for its model."""
        self.plans.released.clear()
        self.plans.add(plan, *plan_of_a_fix())
        issue = self.forge.issue(self.repository, plan)
        mention = self.forge.mention(issue)
        assert self.server.deliver(mention, delivery=delivery) == (202, "stored")
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
        for server in self.servers:
            server.close()
        for worker in self.workers:
            worker.close()


@pytest.fixture
def scenario(
    tmp_path: Path, postgres: Postgres, github: GitHubServer, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    with postgres.new_database() as url:
        address = url.render_as_string(hide_password=False)
        made = Scenario(tmp_path, address, github, model_endpoint)
        yield made
        made.close()


# By day the fence alone, in test_executors.py, and a log that was taken over, in test_run_store.py.
@pytest.mark.nightly
def test_a_suspended_worker_writes_nothing_more(scenario: Scenario) -> None:
    scenario.server.start("--concurrency", "0")
    # a process of its own, which can be suspended and can replace its program
    suspended = scenario.add_worker(INSTALLED_RESOLVER)
    first = scenario.ask("first")
    suspended.process.send_signal(signal.SIGSTOP)
    scenario.add_worker()
    until(lambda: scenario.is_done(first))
    runs = scenario.server.runs
    until(lambda: outcomes_in(runs))
    written = [content_of(stored_in(runs), run) for run in runs_in(runs)]
    scenario.plans.released.set()  # the answer is there when the suspended worker wakes up
    suspended.process.send_signal(signal.SIGCONT)
    until(lambda: suspended.starts == 2)
    assert "could not renew its lease" in suspended.log
    assert [content_of(stored_in(runs), run) for run in runs_in(runs)] == written
    assert scenario.is_done(first)
    assert len(scenario.forge.branches(first.repository)) == 1
    for worker in scenario.workers:
        assert "Traceback" not in worker.log, worker.log


def test_two_servers_store_a_delivery_once_and_stop_a_run_that_the_other_one_executes(
    scenario: Scenario,
) -> None:
    """The operator's `cancel` takes the same way to a run as the comment of a person."""
    servers = (scenario.server, scenario.add_server())
    for server in servers:
        server.start("--concurrency", "1", "--lease-seconds", LEASE_SECONDS)
    scenario.plans.add("stopped", *plan_of_a_fix())
    stopped = scenario.forge.issue(scenario.repository, "stopped")
    mention, together = scenario.forge.mention(stopped), threading.Barrier(2)

    def deliver(server: Server) -> tuple[int, str]:
        together.wait(60)
        return server.deliver(mention, delivery="same")

    with ThreadPoolExecutor(2) as senders:
        assert list(senders.map(deliver, servers)) == [(202, "stored")] * 2
    until(lambda: scenario.plans.times("stopped"))
    executing = scenario.executor_of(stopped, servers)
    [other] = set(servers) - {executing}
    stop = scenario.forge.github.add_comment(stopped, "@agent stop", "mona")
    stop_delivery = scenario.forge.github.event_issue_comment(stop)
    assert other.deliver(stop_delivery) == (202, "stored")
    until(lambda: "stop on octo/calc" in executing.log)
    scenario.plans.released.set()
    until(lambda: scenario.forge.final_comments(stopped))
    [comment] = scenario.forge.own_comments(stopped)
    assert "stopped by mona" in comment.body
    assert len(scenario.plans.times("stopped")) == 1

    cancelled = scenario.ask("cancelled", delivery="cancelled")
    id = f"octo/calc#{cancelled.number}/cancelled"
    assert run(["admin", "cancel", id], scenario.server.environment) == 0
    executing = scenario.executor_of(cancelled, servers)
    stops = ("the operator stops the run of", f"stop on octo/calc#{cancelled.number}")
    until(lambda: any(stop in executing.log for stop in stops))
    scenario.plans.released.set()
    until(lambda: scenario.forge.final_comments(cancelled))
    [comment] = scenario.forge.own_comments(cancelled)
    assert "stopped by the operator of the server" in comment.body
    assert not scenario.forge.pulls(cancelled.repository)
