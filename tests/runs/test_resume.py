"""Tests of `resolver resolve --resume`: which runs can be resumed, and why others can't.

Whole runs, because a resumed run starts from the files that another one left.
"""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from resolver.events.lifecycle import LimitsExtended, Resumed, RunStarted
from resolver.events.run_log import RunLog
from resolver.models.run import RunLimits
from resolver.runs.output import Output
from resolver.runs.resuming.resume import change_limits
from tests.parts.model_endpoint import ModelEndpoint, error, slow
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout
from tests.parts.waiting import until
from tests.trace import sample

FILES = {"calc.py": "def add(a, b):\n    return a - b\n"}
FIX = bash("sed -i 's/a - b/a + b/' calc.py")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "calc", FILES)


@pytest.fixture
def cut_off(command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path) -> Ended:
    """A run whose model failed for good after the first step."""
    model_endpoint.script(FIX, error(400, "no more of that"))
    return command_line.call_resolve(checkout)


def resume(line: CommandLine, output: Path, *options: str) -> Ended:
    done = line.call("resolve", "--resume", output, *options)
    return Ended(done.exit_code, done.stdout, done.stderr, output)


def test_a_failed_run_continues_where_it_was_and_only_once(
    command_line: CommandLine, model_endpoint: ModelEndpoint, cut_off: Ended, checkout: Path
) -> None:
    """Whole runs: the story of a run that failed. While another process works in its folder nobody
    continues it, and commits on its branch do not matter to it."""
    assert cut_off.exit_code == 1, cut_off.stderr
    assert cut_off.outcome["state"] == "error"
    asked = len(model_endpoint.requests)
    held = Output(cut_off.output, resume=True)
    refused = resume(command_line, cut_off.output)
    held.close()
    assert refused.exit_code == 2
    assert "another process is already using" in refused.stderr
    (checkout / "new.txt").write_text("new")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "Go on")
    model_endpoint.script(finish("Make add add"))
    done = resume(command_line, cut_off.output)
    assert done.exit_code == 0, done.stderr
    assert len(model_endpoint.requests) == asked + 1
    assert done.outcome["run"] == cut_off.outcome["run"]
    assert "a + b" in git(checkout, "show", "agent/fix-it:calc.py")
    [resumed] = [e for e in done.events if isinstance(e, Resumed)]
    assert resumed.run == cut_off.outcome["run"]
    assert not list(cut_off.output.glob("earlier-*"))
    assert not any(isinstance(e, LimitsExtended) for e in done.events)
    assert git(checkout, "rev-parse", "agent/fix-it^") == git(checkout, "rev-parse", "main^")

    before = {p.name: p.read_bytes() for p in done.output.iterdir()}
    again = resume(command_line, done.output)
    assert again.exit_code == 0
    assert "already finished" in again.stderr
    assert {p.name: p.read_bytes() for p in done.output.iterdir()} == before


@pytest.mark.nightly
def test_a_run_stopped_by_sigterm_continues(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    model_endpoint.script(FIX, slow(60))
    output = command_line.folder / "stopped"
    issue = command_line.folder / "issue.md"
    issue.write_text("# Fix it")
    process = subprocess.Popen(
        command_line.command("resolve", checkout, "--issue", issue, "--output", output),
        env=command_line.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: len(model_endpoint.requests) == 2 or process.poll() is not None)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"Continue      resolver resolve --resume {output}\n" in shown
    assert json.loads((output / "outcome.json").read_text())["state"] == "stopped"
    model_endpoint.script(finish("Make add add"))
    done = resume(command_line, output)
    assert done.exit_code == 0, done.stderr
    assert "a + b" in git(checkout, "show", "agent/fix-it:calc.py")


@pytest.mark.nightly
def test_limits_count_over_the_whole_run_and_can_be_set_anew(
    command_line: CommandLine, model_endpoint: ModelEndpoint, cut_off: Ended
) -> None:
    done = resume(command_line, cut_off.output, "--max-iterations", "1")
    assert done.exit_code == 4, done.stderr
    assert done.outcome["limit"] == "iterations"
    model_endpoint.script(finish("Make add add"))
    done = resume(command_line, cut_off.output, "--max-iterations", "5")
    assert done.exit_code == 0, done.stderr
    granted = [e.limits.max_iterations for e in done.events if isinstance(e, LimitsExtended)]
    assert granted == [1, 5]


def test_a_limit_of_a_resumed_run_is_set_anew_once_and_the_others_stay(tmp_path: Path) -> None:
    with RunLog(tmp_path / "events.jsonl", lambda event: event, lambda: sample.START) as log:
        log.stream.add(sample.started())
        before = RunLimits(max_iterations=7, max_budget=0.25)
        log.stream.add(LimitsExtended(limits=before))
        for total in (7, 1, 1):
            change_limits(log, {"max_iterations": total})
        events = log.state.events
    granted = [event.limits for event in events if isinstance(event, LimitsExtended)]
    assert granted == [before, before.model_copy(update={"max_iterations": 1})]


@pytest.mark.nightly
def test_a_run_killed_before_its_first_event_starts_under_the_same_id(
    command_line: CommandLine, model_endpoint: ModelEndpoint, cut_off: Ended, checkout: Path
) -> None:
    run = cut_off.outcome["run"]
    (cut_off.output / "outcome.json").unlink()
    (cut_off.output / "events.jsonl").write_text('{"kind": "run_st')
    model_endpoint.script(FIX, finish("Make add add"))
    done = resume(command_line, cut_off.output)
    assert done.exit_code == 0, done.stderr
    first = done.events[0]
    assert isinstance(first, RunStarted)
    assert first.run == done.outcome["run"] == run
    assert git(checkout, "branch", "--list", "agent/*") == "agent/fix-it"


def test_a_rebuilt_change_that_differs_is_reported(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    """Whole runs, because the second has to follow the stored request of the first: to publish
    nothing."""
    model_endpoint.script(bash("echo evening; sed -i 's/a - b/a + b/' calc.py"), finish())
    done = command_line.call_resolve(checkout, "--no-publish")
    log = done.output / "events.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    last = next(json.loads(line)["id"] for line in lines if '"kind":"cmd_output"' in line)
    kept = "".join(lines[: last + 1])
    log.write_text(kept.replace('"content":"evening', '"content":"morning'))
    (done.output / "outcome.json").unlink()
    model_endpoint.script(finish("Make add add"))
    again = resume(command_line, done.output, "--max-iterations", "5")
    assert again.exit_code == 0, again.stderr
    granted = [e.limits.max_iterations for e in again.events if isinstance(e, LimitsExtended)]
    assert granted == [5]
    [result] = again.outcome["divergences"]
    assert result["field"] == "content"
    assert (result["recorded"].strip(), result["found"].strip()) == ("morning", "evening")
    assert "resumed in a new sandbox" in again.stderr
    assert b"a + b" in (again.output / "patch.diff").read_bytes()
    assert git(checkout, "branch", "--list", "agent/*") == "", "the run was not to publish"


@pytest.mark.nightly
def test_a_log_that_can_not_be_continued_says_why(
    command_line: CommandLine, cut_off: Ended, checkout: Path, tmp_path: Path
) -> None:
    log = cut_off.output / "events.jsonl"
    recorded = log.read_text()
    first, rest = recorded.split("\n", 1)
    for changed, says in (
        (first.replace('"schema_version":1', '"schema_version":9'), "version"),
        (first[:-19], "line 1"),
        (first.replace('"id":0', '"id":3'), "line 1"),
    ):
        assert changed != first
        log.write_text(f"{changed}\n{rest}")
        before = log.read_bytes()
        done = resume(command_line, cut_off.output)
        assert done.exit_code == 1, done.stderr
        assert says in done.stderr
        assert "Traceback" not in done.stderr
        assert log.read_bytes() == before

    log.write_text(recorded)
    other = make_checkout(tmp_path / "other", {"a": "a"})
    (checkout / ".git").rename(tmp_path / "gone")
    (other / ".git").rename(checkout / ".git")
    done = resume(command_line, cut_off.output)
    assert done.exit_code == 1
    assert "has no commit" in done.stderr, "the base is gone from the repository"


def test_a_folder_without_a_run_and_a_second_target_are_refused(
    command_line: CommandLine, tmp_path: Path, checkout: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = resume(command_line, empty)
    assert (done.exit_code, list(empty.iterdir())) == (2, [])
    assert "contains no run" in done.stderr
    done = resume(command_line, tmp_path / "missing")
    assert done.exit_code == 2
    assert "contains no run" in done.stderr
    done = command_line.call("resolve", checkout, "--resume", empty)
    assert done.exit_code == 2
    assert "--resume" in done.stderr
