"""Two servers on one PostgreSQL."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from resolver.cli.main import run
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.postgres import Postgres
from tests.parts.waiting import until
from tests.webhook.serving import Forge, HeldPlans, Server, plan_of_a_fix

LEASE_SECONDS = "4"


class Scenario:
    """The servers, and what they are asked for."""

    def __init__(
        self, folder: Path, url: str, github: GitHubServer, endpoint: ModelEndpoint
    ) -> None:
        self.folder, self.forge, self.plans = folder, Forge(github), HeldPlans(endpoint)
        self.repository = self.forge.repository("octo/calc")
        (folder / "serve").mkdir()
        self.server = Server(folder / "serve", self.forge, endpoint, RESOLVER_DATABASE_URL=url)
        self.servers = [self.server]

    def add_server(self) -> Server:
        """A second server on the same database."""
        folder = self.folder / f"serve-{len(self.servers)}"
        folder.mkdir()
        server = Server(folder, self.forge, self.plans.endpoint)
        server.environment = self.server.environment
        self.servers.append(server)
        return server

    def executor_of(self, issue: Issue, among: Sequence[Server]) -> Server:
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

    def close(self) -> None:
        self.plans.released.set()
        for server in self.servers:
            server.close()


@pytest.fixture
def scenario(
    tmp_path: Path, postgres: Postgres, github: GitHubServer, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    with postgres.new_database() as url:
        address = url.render_as_string(hide_password=False)
        made = Scenario(tmp_path, address, github, model_endpoint)
        yield made
        made.close()


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
