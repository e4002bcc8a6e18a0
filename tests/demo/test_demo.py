"""`resolver demo`: real commands on a real repository, with recorded replies."""

from pathlib import Path

import docker
import pytest

from resolver.demo.repository_maker import make_repository
from resolver.events.actions import CmdRun
from resolver.events.lifecycle import ModelReplied, RunStarted
from resolver.events.log import read_log
from resolver.events.observations import CmdOutput
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish, git

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "resolver" / "demo" / "recording.jsonl"
LESSON = ROOT / "docs" / "tutorial" / "first-run.md"


def test_the_recording_is_a_real_run_of_several_steps() -> None:
    events = list(read_log(RECORDING))
    replies = [e for e in events if isinstance(e, ModelReplied)]
    codes = [e.exit_code for e in events if isinstance(e, CmdOutput)]
    assert len(replies) >= 6
    assert 1 in codes, "the failing test was seen"
    assert codes[-1] == 0


def test_the_repository_is_the_recorded_one_on_every_machine(tmp_path: Path) -> None:
    repository, issue = make_repository(tmp_path / "demo")
    opening = next(e for e in read_log(RECORDING) if isinstance(e, RunStarted))
    assert git(repository, "rev-parse", "HEAD") == opening.base
    assert git(repository, "status", "--short") == ""
    assert opening.task.title in issue.read_text()


def check(line: CommandLine, *options: str) -> None:
    """Execute the demo, and look at all that it shows and leaves."""
    line.environment.pop("RESOLVER_VERIFY")
    done = line.run("demo", "--folder", line.folder / "demo", *options, PYTHONPROFILEIMPORTTIME="1")
    assert done.exit_code == 0, done.stdout + done.stderr
    # Importing it takes longer than the rest of the demo.
    assert "resolver.demo" in done.stderr and " litellm\n" not in done.stderr
    [run] = (line.folder / "demo").iterdir()
    branch = "agent/splitting-a-bill-loses-a-cent"
    for path in (run / "repository", run / "output/pull_request.md", run / "output/trace.html"):
        assert str(path) in done.stdout
        assert path.exists()
    assert branch in done.stdout
    assert "\n+        share, odd = divmod(abs(self.cents), ways)\n" in done.stdout
    assert "Changed       3 files, +16 -2\n" in done.stdout
    assert f"git -C {run / 'repository'} diff main...{branch}\n" in done.stdout
    text = (run / "output/pull_request.md").read_text()
    assert "**Verified:** 3 tests fail without the change and pass with it" in text
    before = "5 passed, 1 failed (3 failed with the new tests) without the change"
    row = f"- `python -m unittest discover`: {before}, 8 passed (2 new) with it; "
    assert row in text
    for label in ("What was wrong", "What changed", "What is left"):
        assert text.count(label) == 1 and f"### {label}\n" in text
    assert "differs from its recording" not in done.stdout
    lesson = " ".join(LESSON.read_text().split())
    assert "three tests fail without the change and pass with it" in lesson
    assert f"log --stat main..{branch}" in lesson
    assert git(run / "repository", "log", "--format=%an", f"main..{branch}").count("\n") == 0
    git(run / "repository", "checkout", "-q", branch)
    assert "odd" in (run / "repository/tally/money.py").read_text()
    assert "Load AGENTS.md: always loaded" in done.stdout
    assert "odd cents" in (run / "repository/CHANGES.md").read_text(), "a house rule"
    ran = [e.command for e in read_log(run / "output/events.jsonl") if isinstance(e, CmdRun)]
    tests = [command for command in ran if "unittest" in command]
    assert tests and all("-W error" in command for command in tests), "another one"


def test_on_this_machine_it_ends_with_branch_pull_request_and_trace(
    command_line: CommandLine,
) -> None:
    """A whole run, because the demo is one: its recording has to fit the program of today."""
    command_line.environment |= {"DOCKER_HOST": "tcp://127.0.0.1:1"}
    command_line.environment.pop("RESOLVER_RUNTIME")
    check(command_line)


def test_commands_that_do_not_run_as_recorded_fail_the_demo_and_are_named(
    command_line: CommandLine, tmp_path: Path
) -> None:
    """A whole run, because only an execution differs from the recording, and the command decides
    about the exit code afterwards."""
    broken = tmp_path / "bin" / "python3"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'No such device' >&2\nexit 19\n")
    broken.chmod(0o755)
    path = f"{broken.parent}:{command_line.environment['PATH']}"
    folder = command_line.folder / "demo"
    done = command_line.call("demo", "--folder", folder, "--runtime", "local", PATH=path)
    assert done.exit_code == 1, done.stdout
    assert "Done." not in done.stdout
    assert "did not run as recorded, first event " in done.stdout
    assert "its exit_code was '1' and is now '19'" in done.stdout


@pytest.mark.nightly
@pytest.mark.engine
def test_in_a_container_it_does_the_same(
    command_line: CommandLine, engine: docker.DockerClient, python_image: str
) -> None:
    """A whole run, because the recording has to fit the programs of an image, too."""
    check(command_line, "--runtime", "docker", "--image", python_image)


def test_a_live_model_can_do_it_instead(
    command_line: CommandLine, model_endpoint: ModelEndpoint
) -> None:
    """A whole run, because nothing else shows that the live model is asked, instead of the
    recording, and that the printed events are those of the log."""
    model_endpoint.script(bash("echo fixed >> README.md"), finish("Say that it is fixed"))
    folder = command_line.folder / "demo"
    done = command_line.call("demo", "--live", "--json", "--folder", folder)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "openai/scripted" in done.stderr
    [run] = folder.iterdir()
    assert done.stdout.splitlines() == (run / "output/events.jsonl").read_text().splitlines()
    assert len(model_endpoint.requests) == 2
