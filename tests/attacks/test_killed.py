"""Tests of a run that is killed or stopped at the worst moments: no process or secret is left."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from resolver.events.log import read_log
from tests.attacks.canaries import files_below, leaks
from tests.attacks.stage import Stage, end, eventually, processes_with
from tests.parts.model_endpoint import slow, tool_call
from tests.parts.runs import bash, finish, git

FIX = bash("sed -i 's/a - b/a + b/' calc.py")


def lasting(mark: str) -> str:
    """Return a command that runs for long: in the foreground, detached, and as an orphan."""
    return f"(setsid sleep {mark} &); nohup sleep {mark} & disown; echo begun; sleep {mark}"


def is_running(output: Path, what: str) -> Callable[[], bool]:
    def check() -> bool:
        log = output / "events.jsonl"
        return log.exists() and what in log.read_text(errors="replace")

    return check


def snapshot(checkout: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(checkout)): p.read_bytes() for p in checkout.rglob("*") if p.is_file()
    }


def test_a_killed_run_leaves_a_readable_log_and_nothing_else(stage: Stage) -> None:
    """A run is killed in the middle of a command: no process is left, the log is readable, and
    the next run keeps it."""
    mark = "4321.125"
    output = stage.folder / "output"
    before = snapshot(stage.checkout)
    process = stage.start(output, FIX, bash(lasting(mark), timeout=300))
    assert eventually(lambda: len(processes_with(mark)) >= 3), process.poll()
    done = end(process, signal.SIGKILL)
    assert done.exit_code == -signal.SIGKILL
    assert eventually(lambda: not processes_with(mark), 20), "processes of the sandbox live on"
    assert eventually(lambda: not processes_with(str(stage.temporary)), 20)
    events = list(read_log(output / "events.jsonl"))
    assert [event.id for event in events] == list(range(len(events)))
    assert events[-1].kind == "cmd_run"
    shown = stage.line.run("trace", output)
    assert shown.exit_code == 0
    assert mark in shown.stdout
    assert snapshot(stage.checkout) == before
    assert leaks(files_below(stage.temporary) + files_below(output)) == []

    stage.endpoint.script(FIX, finish("Make add add"))
    again = stage.line.run(
        "resolve", stage.checkout, "--issue", stage.folder / "issue.md", "--output", output
    )
    assert again.exit_code == 0, again.stderr
    outcome = json.loads((output / "outcome.json").read_text())
    assert outcome["branch"] == "agent/fix-it"
    kept = list(read_log(output / "earlier-1" / "events.jsonl"))
    assert [event.id for event in kept] == [event.id for event in events]


@pytest.mark.engine
@pytest.mark.parametrize("runtime", ["docker"])
def test_a_killed_run_leaves_no_container(stage: Stage, engine: object) -> None:
    """A run with Docker is killed: its container is removed."""
    output = stage.folder / "output"
    process = stage.start(output, bash("sleep 300", timeout=300))
    assert eventually(is_running(output, "sleep 300"))
    run = next(iter(read_log(output / "events.jsonl"))).run
    filters = {"label": f"resolver.run={run}"}
    assert len(engine.containers.list(ignore_removed=True, filters=filters)) == 1
    end(process, signal.SIGKILL)
    assert eventually(
        lambda: not engine.containers.list(all=True, ignore_removed=True, filters=filters), 20
    )


@pytest.mark.parametrize(
    ("runtime", "number", "command"),
    [
        ("local", signal.SIGINT, "trap '' INT HUP TERM; while :; do {}; done"),
        pytest.param("docker", signal.SIGTERM, "{}", marks=pytest.mark.engine),
    ],
    ids=["stubborn", "docker"],
)
def test_a_stopped_run_ends_cleanly_in_the_middle_of_a_command(
    stage: Stage, runtime: str, number: signal.Signals, command: str
) -> None:
    """A run is stopped while a stubborn command ignores signals: it ends with its patch, and no
    process is left."""
    mark = f"{5432 + len(runtime) + number}.125"
    output = stage.folder / "output"
    process = stage.start(output, FIX, bash(command.format(lasting(mark)), timeout=300))
    assert eventually(lambda: len(processes_with(mark)) >= 3), process.poll()
    done = end(process, number)
    assert done.exit_code == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert number.name in done.stderr
    assert not processes_with(mark)
    assert not processes_with(str(stage.temporary))
    outcome = json.loads((output / "outcome.json").read_text())
    assert (outcome["state"], outcome["branch"]) == ("stopped", None)
    assert outcome["iterations"] == 2
    assert b"a + b" in (output / "patch.diff").read_bytes()
    assert {p.name for p in output.iterdir()} >= {"trace.md", "trace.html", "events.jsonl"}
    assert list(stage.temporary.iterdir()) == []
    events = list(read_log(output / "events.jsonl"))
    assert [event.id for event in events] == list(range(len(events)))
    assert git(stage.checkout, "branch", "--list", "agent/*") == ""


def test_a_cell_that_takes_no_interrupt_is_stopped_as_well(stage: Stage) -> None:
    """A Python cell catches every interrupt: stopping the run ends it all the same."""
    output = stage.folder / "output"
    cell = "import time\nprint(1, file=open('begun', 'w'))\n"
    cell += "while True:\n  try: time.sleep(1)\n  except BaseException: pass"
    process = stage.start(output, FIX, tool_call("execute_ipython_cell", {"code": cell}))
    assert eventually(is_running(output, "except BaseException: pass")), process.poll()
    assert eventually(lambda: list(stage.temporary.rglob("begun")))
    done = end(process, signal.SIGTERM)
    assert done.exit_code == 1, done.stderr
    assert json.loads((output / "outcome.json").read_text())["state"] == "stopped"
    assert b"a + b" in (output / "patch.diff").read_bytes()


def test_a_run_is_stopped_while_it_waits_for_the_model(stage: Stage) -> None:
    """A run is stopped while the model does not answer: it ends at once and keeps its patch."""
    output = stage.folder / "output"
    process = stage.start(output, FIX, slow(60))
    assert eventually(lambda: len(stage.endpoint.requests) == 2), process.poll()
    done = end(process, signal.SIGTERM)
    assert done.exit_code == 1, done.stderr
    assert "Traceback" not in done.stderr
    outcome = json.loads((output / "outcome.json").read_text())
    assert outcome["state"] == "stopped"
    assert b"a + b" in (output / "patch.diff").read_bytes()
    assert len(stage.endpoint.requests) == 2, "the model was asked again"
    assert list(stage.temporary.iterdir()) == []
