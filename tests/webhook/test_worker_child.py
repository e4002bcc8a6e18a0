"""The process in which `resolver serve` executes its runs: its supervision and its end."""

import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from resolver.entrypoints.webhook.data_folder import RUNS_PROCESS, DataFolder, lock_file
from resolver.entrypoints.webhook.metrics import Observation, ServerMetrics
from resolver.entrypoints.webhook.request_queue import Backlog
from resolver.entrypoints.webhook.worker_supervisor import (
    CHILD_NICENESS,
    CHILD_VARIABLE,
    LEASE_LOST_EXIT,
    WorkerState,
    WorkerSupervisor,
)
from resolver.events.lifecycle import Resumed
from resolver.events.log import read_log
from scripts.chaos import is_runs_process
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.postgres import Postgres
from tests.parts.runs import RESOLVER, bash
from tests.parts.waiting import until
from tests.webhook.serving import Forge, HeldPlans, Server, plan_of_a_fix, series_of

LISTING = """#!{python}
import signal, sys
from pathlib import Path
from resolver.cli.main import main

signal.signal(signal.SIGUSR1, lambda *_: Path("modules").write_text("\\n".join(sys.modules)))
main()
"""
"""The command line in a process that lists its modules when it is asked to."""


class SupervisingServer(Server):
    """`resolver serve`, which executes its runs in a child: both are forks."""

    starts_group = True

    def children(self) -> list[int]:
        """The processes of its runs: one, or none while it starts again."""
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
        return [pid for pid in pids if is_runs_process(pid) and works_in(pid, self.folder)]


def works_in(pid: int, folder: Path) -> bool:
    """Return True if it is the current folder of the process."""
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == folder
    except OSError:
        return False


class SupervisingProgram(SupervisingServer):
    """The same as two real processes, in a session of their own, as in a terminal."""

    starts_session, starts_group = True, False

    def __init__(self, folder: Path, forge: Forge, endpoint: ModelEndpoint, **more: str) -> None:
        super().__init__(folder, forge, endpoint, **more)
        del self.environment[CHILD_VARIABLE]
        self.program = folder / "resolver-listing"
        self.program.write_text(LISTING.format(python=sys.executable))
        self.program.chmod(0o755)

    def become_forks(self) -> None:
        """Let the next start have forks, too."""
        self.program = RESOLVER
        self.starts_session, self.starts_group = False, True
        self.environment[CHILD_VARIABLE] = str(RESOLVER)

    def modules(self) -> set[str]:
        """The names of the modules that the process that takes deliveries has imported."""
        self.process.send_signal(signal.SIGUSR1)
        until(lambda: (self.folder / "modules").exists())
        return set((self.folder / "modules").read_text().split())


class Scenario:
    """A server with its own database, and a repository with one issue that takes long."""

    def __init__(
        self,
        server: type[SupervisingServer],
        folder: Path,
        url: str,
        forge: Forge,
        plans: HeldPlans,
    ) -> None:
        self.forge, self.plans = forge, plans
        database = {"RESOLVER_DATABASE_URL": url} if url else {}
        self.server = server(folder, forge, plans.endpoint, **database)
        repository = forge.repository("octo/calc")
        self.issue = forge.issue(repository, "stuck")

    def ask(self) -> None:
        """Start the server and a run, and wait until the run waits for its model."""
        self.plans.add("stuck", bash("sleep 4713.5", timeout=2), *plan_of_a_fix())
        self.server.start("--metrics-port", "0")
        assert self.server.deliver(self.forge.mention(self.issue)) == (202, "stored")
        until(lambda: len(self.plans.times("stuck")) == 1)
        until(lambda: self.server.worker_state() == "running")

    def resumed(self) -> int:
        """How often the run was continued, once it is done."""
        until(lambda: self.forge.done_once(self.issue))
        until(lambda: list(self.server.runs.glob("*/outcome.json")))
        [log] = [list(read_log(path)) for path in self.server.runs.glob("*/events.jsonl")]
        return sum(isinstance(event, Resumed) for event in log)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty database; "" is the server's own, a file."""
    if request.param == "sqlite":
        yield ""
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    with postgres.new_database() as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture
def scenario(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    database: str,
    github: GitHubServer,
    model_endpoint: ModelEndpoint,
) -> Iterator[Scenario]:
    server: type[SupervisingServer] = getattr(request, "param", SupervisingServer)
    made = Scenario(server, tmp_path, database, Forge(github), HeldPlans(model_endpoint, held=2))
    yield made
    made.server.close()


def test_a_run_goes_on_when_its_process_is_killed(scenario: Scenario) -> None:
    server, plans = scenario.server, scenario.plans
    scenario.ask()
    [killed] = server.children()
    os.kill(killed, signal.SIGKILL)
    until(lambda: "the process of the runs ended (signal 9)" in server.log)
    until(lambda: [pid for pid in server.children() if pid != killed])
    until(lambda: len(plans.times("stuck")) > 1)
    assert server.worker_state() == "running"
    plans.released.set()
    assert scenario.resumed() == 1

    [child] = server.children()
    server.end(signal.SIGKILL)
    until(lambda: not is_runs_process(child), 10)
    assert "Traceback" not in server.log, server.log


@pytest.mark.parametrize(
    ("scenario", "database"),
    [(SupervisingProgram, "sqlite"), (SupervisingServer, "postgresql")],
    indirect=True,
)
def test_a_run_pauses_once_when_the_server_ends(scenario: Scenario) -> None:
    """On SQLite, the processes that end are real ones; on PostgreSQL they are forks."""
    server, plans = scenario.server, scenario.plans
    scenario.ask()
    if isinstance(server, SupervisingProgram):
        assert not {"litellm", "openai"} & server.modules()
        assert server.metrics()["worker_process_resident_memory_bytes"] > 10_000_000
        server.become_forks()

    # as Ctrl-C in a terminal, by somebody who is impatient
    os.killpg(server.process.pid, signal.SIGINT)
    os.killpg(server.process.pid, signal.SIGINT)
    [child] = server.children()
    assert server.process.wait(120) == 0
    until(lambda: not is_runs_process(child), 5)
    plans.released.set()
    assert server.log.count("stopped by SIGINT") == 1
    [comment] = scenario.forge.own_comments(scenario.issue)
    assert comment.body.count("its run pauses") == 1

    server.start("--metrics-port", "0")
    assert scenario.resumed() == 1
    counted = until(lambda: metrics_with_a_run(server))
    assert counted["runs_total finished"] == counted["pull_request_seconds_count"] == 1
    assert counted["tokens_total output"] > 0
    assert counted["worker_up"] == 1 and counted["worker_restarts_total"] == 0


def metrics_with_a_run(server: Server) -> dict[str, float]:
    """Return the metrics of the last start once a run was counted; else nothing.

    The child sends a run's observations one by one, its tokens after its outcome and pull request.
    """
    address = server.log.rpartition("metrics are on ")[2].split()[0]
    with urllib.request.urlopen(address, timeout=20) as answer:
        series = series_of(answer.read())
    return series if series["tokens_total output"] else {}


def script(code: str) -> tuple[str, ...]:
    """Return the command of a child that executes the code."""
    return (sys.executable, "-c", code)


class Observed(list[Observation]):
    """The observations of a child, in their order."""

    def supervise(self, code: str) -> WorkerSupervisor:
        supervisor = WorkerSupervisor(script(code))
        supervisor.start(
            {"PATH": os.environ["PATH"]}, {"model": "m", "label": None}, 3, self.append
        )
        return supervisor


def test_a_child_gets_its_configuration_and_wakes_and_its_messages_are_read() -> None:
    observed = Observed()
    supervisor = observed.supervise(
        "import json, os, sys\n"
        "config = json.loads(sys.stdin.buffer.readline())\n"
        "assert config == {'options': {'model': 'm'}, 'concurrency': 3}, config\n"
        "print('{\"ready\": true}', flush=True)\n"
        "os.read(0, 1)\n"
        'print(\'{"observation": {"metric": "runs", "label": "finished"}}\', flush=True)\n'
        "print('half a li', end='', flush=True)\n"
        "sys.stdin.buffer.read()\n"
    )
    assert supervisor.state is WorkerState.STARTING
    until(lambda: supervisor.is_running)
    supervisor.wake()
    until(lambda: observed)
    assert observed == [Observation(metric="runs", label="finished")]
    pid = supervisor.pid
    assert os.getpriority(os.PRIO_PROCESS, pid) >= CHILD_NICENESS
    supervisor.stop(10)
    assert supervisor.restarts == 0 and not Path(f"/proc/{pid}").exists()
    supervisor.wake()  # of no child
    supervisor.stop(0)


@pytest.mark.parametrize("code", [1, LEASE_LOST_EXIT])
def test_a_child_that_ends_is_started_again_until_it_is_to_stop(code: int) -> None:
    supervisor = Observed().supervise(f"raise SystemExit({code})")
    until(lambda: supervisor.restarts > 1)
    assert not supervisor.is_running
    supervisor.stop(10)
    until(lambda: not [t for t in threading.enumerate() if t.name == "worker-supervisor"])
    assert supervisor.pid == 0


def test_a_child_that_does_not_end_is_killed() -> None:
    supervisor = Observed().supervise(
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('{\"ready\": true}', flush=True)\n"
        "while True: signal.pause()\n"
    )
    until(lambda: supervisor.is_running)
    pid = supervisor.pid
    supervisor.stop(0.2)
    assert not Path(f"/proc/{pid}").exists()


def test_what_a_child_observes_is_counted_by_its_parent_once() -> None:
    parent = ServerMetrics(Backlog)
    for _ in range(2):  # a child, and the one after its death, which has forgotten what it counted
        child = ServerMetrics(Backlog, forward=parent.record)
        child.record(Observation(metric="first_comment", value=3.0, idempotency_key="octo/calc#1"))
        child.record(Observation(metric="first_comment", value=9.0, idempotency_key="octo/calc#1"))
        child.record(Observation(metric="cost", value=0.25))
    counted: dict[str, Any] = series_of(generate_latest(parent.registry))
    assert counted["first_comment_seconds_count"] == 1
    assert counted["first_comment_seconds_sum"] == 3
    assert counted["cost_dollars_total"] == 0.5


def test_the_process_of_the_runs_waits_for_the_one_before_it(tmp_path: Path) -> None:
    held = DataFolder(tmp_path, RUNS_PROCESS)
    code = (
        "from resolver.entrypoints.webhook.data_folder import RUNS_PROCESS, DataFolder\n"
        "from pathlib import Path\n"
        "print('waits', flush=True)\n"
        f"DataFolder(Path({str(tmp_path)!r}), RUNS_PROCESS)\n"
    )
    waiting = subprocess.Popen(script(code), stdout=subprocess.PIPE)
    assert waiting.stdout is not None and waiting.stdout.readline() == b"waits\n"
    os.close(lock_file(tmp_path / ".lock"))  # the one that takes deliveries has another lock
    held.close()
    assert waiting.wait(60) == 0
    waiting.stdout.close()
