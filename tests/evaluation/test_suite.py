"""Tests of the suite that the repository has: each task tells the real fix from its absence."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from resolver.cli.eval import bundled_suite
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


def test_the_suite_is_part_of_the_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    packaged = {name.split("/")[2] for name in names if name.startswith("resolver/suite/")}
    assert packaged == SUITE.keys()
    assert bundled_suite() == ROOT / "suite"


def start_task(task: Path, folder: Path) -> Path:
    """Return the repository of a task, as its Dockerfile makes it."""
    shutil.copytree(task / "environment/repository", folder)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Start of the task")
    return folder


@pytest.mark.parametrize("name", SUITE)
def test_the_real_fix_applies(name: str, tmp_path: Path) -> None:
    repository = start_task(SUITE[name], tmp_path / "testbed")
    execute_script(SUITE[name] / "solution/solve.sh", repository, tmp_path)
    assert git(repository, "status", "--porcelain")


@pytest.mark.parametrize("name", EXECUTED)
def test_only_the_real_fix_resolves_a_task(name: str, tmp_path: Path) -> None:
    task, repository = SUITE[name], start_task(SUITE[name], tmp_path / "testbed")
    assert reward_of(task, repository, tmp_path / "before") == "0"
    git(repository, "reset", "-q", "--hard")
    execute_script(task / "solution/solve.sh", repository, tmp_path)
    assert reward_of(task, repository, tmp_path / "after") == "1"
