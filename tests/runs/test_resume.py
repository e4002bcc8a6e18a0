"""Tests of `resolver resolve --resume`: which runs can be resumed, and why others can't.

Whole runs, because a resumed run starts from the files that another one left.
"""

from pathlib import Path

import pytest

from resolver.events.lifecycle import LimitsExtended, Resumed
from resolver.runs.output import Output
from tests.parts.model_endpoint import ModelEndpoint, error
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout

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
