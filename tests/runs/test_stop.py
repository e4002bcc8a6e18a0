"""A stop ends a run at any stage, at once: nothing is published, and what there is is kept.

Whole runs, because a stop has to reach whatever the run is doing, wherever that is. What runs would
go on for most of an hour, so that a run which ends was stopped. A signal and a comment that stops a
run take the same way, from where the signal was received.
"""

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.parts.model_endpoint import ModelEndpoint, slow
from tests.parts.processes import act_on_start, count_running
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout
from tests.parts.waiting import until
from tests.runs.scenario import SELDOM, Scenario

FILES = {"calc.sh": "add() { echo $(($1 - $2)); }\n"}
FIX = {"command": "sed -i 's/- /+ /' calc.sh"}
SETUP = {".agents/setup.sh": "sleep 3001\n"}
CHECKS = {".github/resolver.yml": 'checks: [{name: slow, command: "sleep 3003"}]\n'}


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def when(condition: Callable[[], object]) -> None:
    """Send this process a signal as soon as the condition is true."""

    def wait_and_act() -> None:
        until(condition)
        interrupt()

    threading.Thread(target=wait_and_act, daemon=True).start()


def require_stopped(done: Ended, checkout: Path, kept: bool, how: str) -> None:
    """Require that nothing was published, the work is kept, and the way to go on is said."""
    assert done.exit_code == 1, done.stdout + done.stderr
    assert done.outcome["state"] == "stopped"
    assert "SIGTERM" in done.stdout + done.stderr
    assert git(checkout, "branch", "--format=%(refname:short)") == "main"
    assert done.outcome["branch"] is None and done.outcome["pull_request"] is None
    assert [event.id for event in done.events] == list(range(len(done.events)))
    assert ("+ $2" in (done.output / "patch.diff").read_text()) == kept
    assert f"resolver {how} {done.output}" in done.stdout + done.stderr


def script(folder: Path, *commands: dict[str, object]) -> dict[str, str]:
    """Write the replies of a model that calls these commands and finishes; return the setting."""
    replies = [{"text": "I try", "calls": [{"execute_bash": command}]} for command in commands]
    last = {"finish": {"title": "Fix add", "message": "Fix add", "task_completed": "true"}}
    file = folder / "script.json"
    file.write_text(json.dumps([*replies, {"text": "Done", "calls": [last]}]))
    return {"LLM_MODEL": f"scripted:{file}"}


STAGES = pytest.mark.parametrize(
    ("command", "files", "kept", "how"),
    [
        pytest.param("sleep 3001", SETUP, False, "resolve --resume", id="set-up"),
        pytest.param("sleep 3003", CHECKS, True, "publish", id="checks"),
    ],
)


def stop_while_it_runs(
    line: CommandLine, checkout: Path, command: str, is_of_agent: bool, *options: str
) -> Ended:
    """Run, and send a signal as soon as a process with this command line is running."""
    commands = [FIX, {"command": command, "timeout": 3600}] if is_of_agent else [FIX]
    act_on_start(command, interrupt)
    model = script(line.folder, *commands)
    return line.call_resolve(checkout, *options, RESOLVER_VERIFY="true", **model)


@STAGES
def test_a_signal_ends_what_runs_in_a_sandbox(
    command: str,
    files: dict[str, str],
    kept: bool,
    how: str,
    command_line: CommandLine,
    tmp_path: Path,
) -> None:
    checkout = make_checkout(tmp_path / "calc", {**FILES, **files})
    done = stop_while_it_runs(command_line, checkout, command, not files)
    require_stopped(done, checkout, kept, how)
    assert count_running(command) == 0
    if how == "publish":
        published = command_line.call("publish", done.output)
        assert published.exit_code == 0, published.stdout + published.stderr
        assert "+ $2" in git(checkout, "show", f"{done.outcome['branch']}:calc.sh")


def test_a_signal_ends_a_run_that_waits_for_its_model(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)
    model_endpoint.script(bash(FIX["command"]), slow(3000, finish()))
    when(lambda: len(model_endpoint.requests) == 2)
    done = command_line.call_resolve(checkout)
    require_stopped(done, checkout, True, "resolve --resume")


def test_a_signal_ends_a_run_that_waits_for_git(scenario: Scenario) -> None:
    """The server of the repository does not answer before the push."""

    def hold() -> None:
        held = scenario.github.hold_next("GET", "/info/refs", lost=True)
        when(held.reached.is_set)

    act_on_start("sleep 0.53", hold)
    model = script(scenario.line.folder, {"command": "echo >> calc.py; sleep 0.53"})
    event = scenario.github.event_issue_comment(scenario.mention())
    done = scenario.action(event, **SELDOM, **model)
    assert done.exit_code == 1, done.stdout + done.stderr
    assert done.outcome["state"] == "stopped"
    assert not scenario.branches() and not scenario.pulls()
    assert scenario.outputs()["state"] == "stopped"
    assert (done.output / "patch.diff").exists()
    result = scenario.bot_comments()[-1]
    assert "SIGTERM" in result and "@agent publish" in result, result


def test_the_time_limit_ends_a_command(command_line: CommandLine, tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)
    model = script(command_line.folder, FIX, {"command": "sleep 3004", "timeout": 3600})
    done = command_line.call_resolve(checkout, "--max-time", "3", **model)
    assert done.exit_code == 4, done.stdout + done.stderr
    assert done.outcome["state"] == "limit"
    assert "+ $2" in (done.output / "patch.diff").read_text()
    assert count_running("sleep 3004") == 0
