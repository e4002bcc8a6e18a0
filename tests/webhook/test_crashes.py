"""A server that is killed or asked to terminate in the middle of a run, and started again.

Whole runs on real servers, because what a killed process leaves is what the next one finds.
"""

import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from resolver.events.actions import CmdRun
from resolver.events.lifecycle import Resumed
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import bash
from tests.parts.stored_runs import outcomes_in, runs_in, stored_in
from tests.parts.waiting import until
from tests.webhook.serving import Forge, Plans, Server, plan_of_a_fix


class Scenario:
    """A server with one repository, whose first run gets stuck in a command."""

    def __init__(self, folder: Path, github: GitHubServer, endpoint: ModelEndpoint) -> None:
        self.forge = Forge(github)
        self.plans = Plans(endpoint)
        self.name = self.forge.repository("octo/calc")
        serving = folder / "serve"
        serving.mkdir()
        self.server = Server(serving, self.forge, endpoint)

    def ask(self, plan: str) -> Issue:
        issue = self.forge.issue(self.name, plan)
        assert self.server.deliver(self.forge.mention(issue)) == (202, "stored")
        return issue


def processes(word: str) -> list[int]:
    """Processes of this machine with the word in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and word.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def stored_requests(database: Path) -> int:
    """Return the number of requests that a server has stored."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM workflow_status").fetchone()[0])


@pytest.fixture
def scenario(
    tmp_path: Path, github: GitHubServer, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    made = Scenario(tmp_path, github, model_endpoint)
    yield made
    made.server.close()
    made.server.check()


def test_a_run_ended_by_sigkill_and_by_sigterm_continues_after_each_restart(
    scenario: Scenario,
) -> None:
    server = scenario.server
    sleeping = bash("sleep 4711.5", timeout=4)
    scenario.plans.add("stuck", sleeping)
    server.start()
    issue = scenario.ask("stuck")
    waiting = scenario.forge.issue(scenario.name, "waiting")
    scenario.plans.add("waiting", *plan_of_a_fix())
    until(lambda: processes("4711.5"))
    assert server.deliver(scenario.forge.mention(waiting))[0] == 202
    server.end(signal.SIGKILL)
    until(lambda: not processes("4711.5"), 5)
    assert not scenario.forge.branches(issue.repository)

    scenario.plans.add("stuck", sleeping, *plan_of_a_fix(delay=0.8))
    server.start()
    until(lambda: len(scenario.plans.times("stuck")) > 1)
    assert server.end(signal.SIGTERM) == 0
    assert "stopped by SIGTERM" in server.log
    assert not scenario.forge.final_comments(issue), (
        "a run that continues later is not reported as ended"
    )

    server.start()
    until(lambda: scenario.forge.final_comments(issue) and scenario.forge.final_comments(waiting))
    until(lambda: len(outcomes_in(server.runs)) == 2)
    assert (
        len(scenario.forge.final_comments(issue))
        == len(scenario.forge.final_comments(waiting))
        == 1
    )
    assert len(scenario.forge.branches(issue.repository)) == 2
    assert len(scenario.forge.pulls(issue.repository)) == 2
    assert len(issue.comments[0].reactions) == 1
    assert "attempt 3" in server.log
    store = stored_in(server.runs)
    logs = [list(store.events(run)) for run in runs_in(server.runs)]
    [taken_up] = [log for log in logs if any(isinstance(event, Resumed) for event in log)]
    assert sum(isinstance(event, Resumed) for event in taken_up) == 2
    sleeps = [e for e in taken_up if isinstance(e, CmdRun) and "4711.5" in e.command]
    assert len(sleeps) == 1, "what the log has is not asked for again"
    until(lambda: not list((server.folder / "resolver-runs/tmp").iterdir()), 5)


@pytest.mark.attack
def test_a_kill_while_a_delivery_is_acknowledged_loses_and_doubles_nothing(
    scenario: Scenario,
) -> None:
    """The server is killed between storing and answering a delivery, while it reacts to the
    request: nothing is lost, and nothing is done twice."""
    server, forge = scenario.server, scenario.forge
    database = server.folder / "resolver.db"
    server.environment["RESOLVER_DATABASE_URL"] = f"sqlite:///{database}"
    scenario.plans.add("fix", *plan_of_a_fix())
    server.start()
    issue = forge.issue(scenario.name, "fix")
    payload = forge.mention(issue)
    hold = forge.github.hold_next("POST", r"/issues/comments/\d+/reactions$")
    with ThreadPoolExecutor() as sender:
        answer = sender.submit(server.deliver, payload, delivery="d-1")
        assert hold.reached.wait(60)
        server.end(signal.SIGKILL)
        answer.exception()  # GitHub may have seen an answer or not
    hold.released.set()

    server.start()
    assert server.deliver(payload, delivery="d-1") == (202, "stored")
    until(lambda: forge.done_once(issue))
    assert stored_requests(database) == 1
