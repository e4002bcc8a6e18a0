"""Tests of the suite that the repository has: each task tells the real fix from its absence."""

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import pytest

from resolver.evaluation.repositories import open_task_repository
from resolver.evaluation.scoring import build_scored_tree, score_execution
from resolver.evaluation.task_format import (
    BUNDLED,
    SOLUTION_PATCH,
    EvaluationTask,
    find_suite,
    read_suite,
)
from resolver.git.overlay import apply_patch
from resolver.git.workspace import Workspace
from resolver.models.verification import CheckExecution
from resolver.verification.reports import read_reports

ROOT = Path(__file__).parents[2]
SUITE = {task.id: task for task in read_suite(ROOT / "suite")}
EXECUTED = [name for name in SUITE if name.startswith(("python-", "shell-"))]
"""The tasks whose tools are on every machine that runs the tests."""


def test_the_suite_has_25_tasks_in_six_languages() -> None:
    assert len(SUITE) == 25
    assert len({task.config.metadata.language for task in SUITE.values()}) == 6
    assert {task.problem for task in SUITE.values()} == {""}


def test_the_suite_is_part_of_the_wheel_and_has_a_name(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    packaged = {name.split("/")[2] for name in names if name.startswith("resolver/suite/")}
    assert packaged == SUITE.keys()
    assert find_suite(Path(BUNDLED)) == ROOT / "suite"
    assert find_suite(tmp_path) == tmp_path


@pytest.mark.parametrize("name", SUITE)
def test_the_real_fix_applies_and_nothing_speaks_against_it(name: str, tmp_path: Path) -> None:
    task = SUITE[name]
    workspace = open_task_repository(task, tmp_path / "repository.git")
    fixed = apply_patch(workspace.git, workspace.base, read_solution(task))
    scored = build_scored_tree(workspace, fixed, task.hidden_files(), b"")
    assert scored.tampering == ()
    assert scored.code == fixed


def read_solution(task: EvaluationTask) -> bytes:
    return (task.folder / SOLUTION_PATCH).read_bytes()


def execute(workspace: Workspace, tree: str, task: EvaluationTask, folder: Path) -> CheckExecution:
    """Execute the hidden tests of a task of this repository, without a sandbox."""
    archive = workspace.git.run("archive", "--format=tar", tree)
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    command = ["bash", "-eo", "pipefail", "-c", task.hidden.command]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    output = done.stdout + done.stderr
    read = read_reports(task.hidden.report_format, {}, output, str(folder))
    return CheckExecution(
        exit_code=done.returncode, seconds=0, cases=read.cases, report_complete=read.complete
    )


@pytest.mark.parametrize("name", EXECUTED)
def test_only_the_real_fix_resolves_a_task(name: str, tmp_path: Path) -> None:
    task = SUITE[name]
    assert task.expected is not None
    workspace = open_task_repository(task, tmp_path / "repository.git")
    hidden: Mapping[str, bytes] = task.hidden_files()
    fixed = apply_patch(workspace.git, workspace.base, read_solution(task))
    causes = []
    for number, tree in enumerate((workspace.base, fixed)):
        scored = build_scored_tree(workspace, tree, hidden, b"")
        done = execute(workspace, scored.tree, task, tmp_path / str(number))
        causes.append(score_execution(task.expected, task.hidden.check, done).cause)
    assert causes == ["tests_failed", ""]
