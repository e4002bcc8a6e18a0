"""A server that is killed or told to end in the middle of a run, and started again."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from resolver.config.settings import Settings
from resolver.entrypoints.webhook.costs import SpendingLedger
from resolver.entrypoints.webhook.database import parse_database_url
from resolver.events.actions import CmdRun
from resolver.events.lifecycle import Resumed
from resolver.events.log import read_log
from resolver.events.state import State
from resolver.events.stream import utc_now
from resolver.runs.common import run_id, trigger_for_target
from resolver.runtime.engine import RUN_LABEL
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import bash
from tests.parts.waiting import until
from tests.webhook.serving import Forge, Plans, Server, plan_of_a_fix


class Scene:
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


@pytest.fixture
def scene(tmp_path: Path, github: GitHubServer, model_endpoint: ModelEndpoint) -> Iterator[Scene]:
    made = Scene(tmp_path, github, model_endpoint)
    yield made
    made.server.close()
    made.server.check()


def test_a_run_cut_off_by_kill_and_by_sigterm_goes_on_after_each_restart(scene: Scene) -> None:
    server = scene.server
    sleeping = bash("sleep 4711.5", timeout=4)
    scene.plans.add("stuck", sleeping)
    server.start()
    issue = scene.ask("stuck")
    waiting = scene.forge.issue(scene.name, "waiting")
    scene.plans.add("waiting", *plan_of_a_fix())
    until(lambda: processes("4711.5"))
    assert server.deliver(scene.forge.mention(waiting))[0] == 202
    server.end(signal.SIGKILL)
    until(lambda: not processes("4711.5"), 5)
    assert not scene.forge.branches(issue.repository)

    scene.plans.add("stuck", sleeping, *plan_of_a_fix(delay=0.8))
    server.start()
    until(lambda: len(scene.plans.times("stuck")) > 1)
    assert server.end(signal.SIGTERM) == 0
    assert "stopped by SIGTERM" in server.log
    assert not scene.forge.told(issue), "what goes on later is not told as an ending"

    server.start()
    until(lambda: scene.forge.told(issue) and scene.forge.told(waiting))
    until(lambda: len(list(server.runs.glob("*/outcome.json"))) == 2)
    assert len(scene.forge.told(issue)) == len(scene.forge.told(waiting)) == 1
    assert len(scene.forge.branches(issue.repository)) == 2
    assert len(scene.forge.pulls(issue.repository)) == 2
    assert len(issue.comments[0].reactions) == 1
    assert "attempt 3" in server.log
    assert not list(server.runs.glob("*/earlier-*"))
    logs = [list(read_log(path)) for path in server.runs.glob("*/events.jsonl")]
    [taken_up] = [log for log in logs if any(isinstance(event, Resumed) for event in log)]
    assert sum(isinstance(event, Resumed) for event in taken_up) == 2
    sleeps = [e for e in taken_up if isinstance(e, CmdRun) and "4711.5" in e.command]
    assert len(sleeps) == 1, "what the log has is not asked for again"
    until(lambda: not list((server.runs / "tmp").iterdir()), 5)


def test_what_a_killed_run_has_cost_is_counted_once(scene: Scene) -> None:
    server = scene.server
    server.environment |= {
        "RESOLVER_MODEL_OPTIONS": "{input_cost_per_token: 0.00001, output_cost_per_token: 0}",
        "RESOLVER_DATABASE_URL": f"sqlite:///{server.folder}/resolver.db",
    }
    ledger = SpendingLedger(parse_database_url(f"sqlite:///{server.folder}/resolver.db"))
    sleeping = bash("sleep 4714.5", timeout=2)
    scene.plans.add("stuck", sleeping)
    server.start()
    issue = scene.ask("stuck")
    until(lambda: processes("4714.5"))
    server.end(signal.SIGKILL)
    (killed,) = ledger.totals(utc_now())
    assert (killed.at_work, killed.reserved, killed.cost) == (1, 5.0, 0.0)

    scene.plans.add("stuck", sleeping, *plan_of_a_fix())
    server.start()
    until(lambda: scene.forge.told(issue))
    until(lambda: not ledger.totals(utc_now())[0].at_work)
    (total,) = ledger.totals(utc_now())
    [log] = server.runs.glob("*/events.jsonl")
    assert total.runs == 1
    assert total.cost == pytest.approx(State.fold(read_log(log)).priced)
    assert total.cost >= 3 * 0.001
    ledger.close()


def test_a_kill_right_after_a_step_of_publishing_leaves_nothing_twice(scene: Scene) -> None:
    server, forge = scene.server, scene.forge
    server.start()

    def killed_after(step: str, look: Callable[[Issue], object]) -> tuple[Issue, list[int]]:
        scene.plans.add(step, *plan_of_a_fix())
        issue = scene.ask(step)
        until(lambda: scene.plans.times(step))
        if step == "push":  # the next look for a pull request is the one before it is opened
            forge.github.slow_next("GET", r"/pulls$", 3)
        until(lambda: look(issue))
        server.end(signal.SIGKILL)
        wanted = f"agent/issue-{issue.number}-plan-{step}"
        made = [b for b in forge.branches(issue.repository) if b == wanted]
        pulls = [p for p in forge.pulls(issue.repository) if f"#{issue.number}" in (p.body or "")]
        return issue, [len(made), len(pulls), len(forge.told(issue))]

    def finished(issue: Issue, ends: int) -> None:
        server.start()
        # a run whose outcome was written before the kill is only found to be done
        ended = (" ended with ", " was handled before")
        until(lambda: sum(map(server.log.count, ended)) >= ends)
        assert len(forge.told(issue)) == 1

    pushed, found = killed_after("push", lambda issue: forge.branches(issue.repository))
    assert found == [1, 0, 0]
    finished(pushed, 1)
    opened, found = killed_after("open", lambda i: len(forge.pulls(i.repository)) == 2)
    assert found == [1, 1, 0]
    finished(opened, 2)
    told, found = killed_after("tell", forge.told)
    assert found == [1, 1, 1]
    finished(told, 3)
    steps = (("open", opened), ("push", pushed), ("tell", told))
    names = {f"agent/issue-{issue.number}-plan-{step}" for step, issue in steps}
    assert set(forge.branches(told.repository)) == names
    assert len(forge.pulls(told.repository)) == 3
    assert len(scene.plans.times("open")) == len(scene.plans.times("tell")) == 2


@pytest.mark.engine
def test_no_container_of_a_killed_run_is_left(
    scene: Scene, engine: docker.DockerClient, python_image: str
) -> None:
    server = scene.server
    server.environment |= {"RESOLVER_RUNTIME": "docker", "RESOLVER_IMAGE": python_image}
    sleeping = bash("sleep 4712.5", timeout=4)
    scene.plans.add("docked", sleeping)
    server.start()
    issue = scene.forge.issue(scene.name, "docked")
    payload = scene.forge.mention(issue)
    trigger = trigger_for_target(Settings(), "issue_comment", payload)
    run = run_id(trigger.key, trigger.at)  # type: ignore[union-attr]
    mine = {"label": f"{RUN_LABEL}={run}"}
    assert server.deliver(payload)[0] == 202
    until(lambda: processes("4712.5"))
    assert engine.containers.list(ignore_removed=True, filters=mine)
    server.end(signal.SIGKILL)
    until(lambda: not engine.containers.list(ignore_removed=True, filters=mine), 20)
    left = engine.containers.run(
        python_image, "sleep 600", labels={RUN_LABEL: run}, detach=True, network_mode="none"
    )

    scene.plans.add("docked", sleeping, *plan_of_a_fix())
    server.start()
    until(lambda: scene.forge.done_once(issue), 60)
    until(lambda: not engine.containers.list(all=True, ignore_removed=True, filters=mine), 20)
    with pytest.raises(docker.errors.NotFound):
        left.reload()
