"""Tests of what belongs to a recorded trajectory: its task, and the comparison of its change."""

import json
import os
import shutil
from pathlib import Path

import pytest

from resolver.cli.main import run
from resolver.evaluation.recording import find_differing_paths, find_task
from resolver.evaluation.repositories import open_task_repository
from resolver.evaluation.task_format import SOLUTION_PATCH, read_suite
from resolver.evaluation.trajectories import RecordedTrajectory
from resolver.git.overlay import apply_patch

SUITE = {task.id: task for task in read_suite(Path(__file__).parents[2] / "suite")}


def recorded(id: str) -> RecordedTrajectory:
    return RecordedTrajectory(id, (), None, ())


def test_the_task_is_found_by_id_or_file_or_is_the_only_one() -> None:
    other = Path("x/other.traj.json")
    name = Path("x/c-trim.traj.json")
    assert find_task(SUITE, recorded("c-trim"), other) is SUITE["c-trim"]
    assert find_task(SUITE, recorded(""), name) is SUITE["c-trim"]
    assert find_task(SUITE, recorded("x"), other) is None
    assert find_task({"c-trim": SUITE["c-trim"]}, recorded("x"), other) is SUITE["c-trim"]


def test_changes_are_the_same_if_they_give_the_same_tree(tmp_path: Path) -> None:
    task = SUITE["python-slug"]
    patch = (task.folder / SOLUTION_PATCH).read_bytes()
    repository = open_task_repository(task, tmp_path / "repository.git")
    tree = apply_patch(repository.git, repository.base, patch)
    changed = ("slugs.py",)
    assert find_differing_paths(repository, tree, patch) == ()
    assert find_differing_paths(repository, repository.base, patch) == changed
    assert find_differing_paths(repository, tree, None) is None
    assert find_differing_paths(repository, tree, b"diff --git a/x b/x\nnonsense\n") is None


def test_two_replays_of_one_recording_give_the_same_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whole runs, because two real executions are compared."""
    task = SUITE["shell-spaces"]
    patch = (task.folder / SOLUTION_PATCH).read_text()
    command = f"cd /testbed && git apply - 2>/dev/null <<'EOF'\n{patch}EOF\npwd"
    recording = tmp_path / "shell-spaces.traj.json"
    messages = [
        {"role": "assistant", "content": f"```bash\n{command}\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\n/testbed\n</output>"},
    ]
    recording.write_text(json.dumps({"messages": messages, "info": {"submission": patch}}))
    environment = {
        "HOME": str(tmp_path / "home"),
        "PATH": os.environ["PATH"],
        "RESOLVER_RUNTIME": "local",
    }
    words = ["eval", "replay", str(recording), "--suite", str(task.folder)]
    reports = []
    for _ in range(2):
        assert run(words, environment) == 0
        reports.append(capsys.readouterr().out)
    assert reports[0] == reports[1]
    result = "1 command executed, 0 with another result; the change is the recorded one; resolved"
    assert result in reports[0]
    # Without hidden tests, the change is compared all the same.
    untested = tmp_path / "untested/shell-spaces"
    shutil.copytree(task.folder / "environment", untested / "environment")
    (untested / "task.toml").write_text('schema_version = "1.1"\n')
    (untested / "instruction.md").write_text("# Spaces\n")
    assert run([*words[:-1], str(untested.parent)], environment) == 0
    assert "the change is the recorded one; not scored" in capsys.readouterr().out
