"""Tests of the suite that the repository has: each task tells the real fix from its absence."""

import shutil
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.evaluation.task_schema import check_task, execute_script, reward_of
from tests.parts.runs import git

ROOT = Path(__file__).parents[2]
SUITE = {folder.name: folder for folder in sorted((ROOT / "suite").iterdir())}
EXECUTED = [name for name in SUITE if name.startswith(("python-", "shell-"))]
"""The tasks whose tools are on every machine that runs the tests."""


def test_the_suite_has_25_tasks_of_harbor_in_six_languages() -> None:
    configs = [check_task(folder) for folder in SUITE.values()]
    assert [config["task"]["name"] for config in configs] == [f"resolver/{name}" for name in SUITE]
    assert len(configs) == 25
    assert len({config["metadata"]["language"] for config in configs}) == 6


def night(name: str) -> ParameterSet:
    return pytest.param(name, marks=pytest.mark.nightly)


def start_task(task: Path, folder: Path) -> Path:
    """Return the repository of a task, as its Dockerfile makes it."""
    shutil.copytree(task / "environment/repository", folder)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Start of the task")
    return folder


@pytest.mark.parametrize(
    "name", [name if name == "shell-spaces" else night(name) for name in EXECUTED]
)
def test_only_the_real_fix_resolves_a_task(name: str, tmp_path: Path) -> None:
    task, repository = SUITE[name], start_task(SUITE[name], tmp_path / "testbed")
    assert reward_of(task, repository, tmp_path / "before") == "0"
    git(repository, "reset", "-q", "--hard")
    execute_script(task / "solution/solve.sh", repository, tmp_path)
    assert reward_of(task, repository, tmp_path / "after") == "1"
