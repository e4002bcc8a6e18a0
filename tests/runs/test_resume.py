"""`resolver resolve --resume`: what can be gone on with, what can't, and how each is told."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from resolver.events.lifecycle import LimitsExtended, Resumed, RunStarted
from resolver.runs.output import Output
from tests.parts.model_endpoint import ModelEndpoint, error, slow
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout
from tests.parts.waiting import until

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


def test_a_failed_run_goes_on_where_it_was(
    command_line: CommandLine, model_endpoint: ModelEndpoint, cut_off: Ended, checkout: Path
) -> None:
    assert cut_off.exit_code == 1, cut_off.stderr
    assert cut_off.outcome["state"] == "error"
    asked = len(model_endpoint.requests)
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


def test_a_run_that_sigterm_stopped_goes_on(
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


def test_a_change_that_comes_out_otherwise_is_told(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    model_endpoint.script(bash("echo evening; sed -i 's/a - b/a + b/' calc.py"), finish())
    done = command_line.call_resolve(checkout, "--no-publish")
    log = done.output / "events.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    last = next(json.loads(line)["id"] for line in lines if '"kind":"cmd_output"' in line)
    kept = "".join(lines[: last + 1])
    log.write_text(kept.replace('"content":"evening', '"content":"morning'))
    (done.output / "outcome.json").unlink()
    model_endpoint.script(finish("Make add add"))
    again = resume(command_line, done.output)
    assert again.exit_code == 0, again.stderr
    [result] = again.outcome["divergences"]
    assert result["field"] == "content"
    assert (result["recorded"].strip(), result["found"].strip()) == ("morning", "evening")
    assert "resumed in a new sandbox" in again.stderr
    assert b"a + b" in (again.output / "patch.diff").read_bytes()
    assert git(checkout, "branch", "--list", "agent/*") == "", "the run was not to publish"


def test_a_run_that_is_done_is_left_alone(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    model_endpoint.script(FIX, finish("Make add add"))
    done = command_line.call_resolve(checkout)
    before = {p.name: p.read_bytes() for p in done.output.iterdir()}
    again = resume(command_line, done.output)
    assert again.exit_code == 0
    assert "already finished" in again.stderr
    assert {p.name: p.read_bytes() for p in done.output.iterdir()} == before


def test_a_folder_that_another_process_works_in_is_refused(
    command_line: CommandLine, model_endpoint: ModelEndpoint, cut_off: Ended
) -> None:
    held = Output(cut_off.output, resume=True)
    done = resume(command_line, cut_off.output)
    held.close()
    assert done.exit_code == 2
    assert "another process is already using" in done.stderr
    model_endpoint.script(finish("Make add add"))
    assert resume(command_line, cut_off.output).exit_code == 0


def test_a_base_that_is_gone_from_the_repository_is_a_clear_error(
    command_line: CommandLine, cut_off: Ended, checkout: Path, tmp_path: Path
) -> None:
    other = make_checkout(tmp_path / "other", {"a": "a"})
    (checkout / ".git").rename(tmp_path / "gone")
    (other / ".git").rename(checkout / ".git")
    done = resume(command_line, cut_off.output)
    assert done.exit_code == 1
    assert "has no commit" in done.stderr


def test_a_branch_that_moved_on_does_not_matter(
    command_line: CommandLine, model_endpoint: ModelEndpoint, cut_off: Ended, checkout: Path
) -> None:
    (checkout / "new.txt").write_text("new")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "Go on")
    model_endpoint.script(finish("Make add add"))
    done = resume(command_line, cut_off.output)
    assert done.exit_code == 0, done.stderr
    assert git(checkout, "rev-parse", "agent/fix-it^") == git(checkout, "rev-parse", "main^")


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (lambda line: line.replace('"schema_version":1', '"schema_version":9'), 1, "version"),
        (lambda line: line[:-20] + "\n", 1, "line 1"),
        (lambda line: line.replace('"id":0', '"id":3'), 1, "line 1"),
    ],
)
def test_a_log_that_can_not_be_gone_on_with_says_why(
    command_line: CommandLine, cut_off: Ended, change: object, code: int, says: str
) -> None:
    log = cut_off.output / "events.jsonl"
    first, rest = log.read_text().split("\n", 1)
    log.write_text(change(first + "\n") + rest)  # type: ignore[operator]
    before = log.read_bytes()
    done = resume(command_line, cut_off.output)
    assert done.exit_code == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert log.read_bytes() == before


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
