"""Tests of the importer of SWE-bench's format."""

import json
import subprocess
from pathlib import Path

import pytest

from resolver.errors import UsageError, WorkspaceError
from resolver.evaluation.repositories import open_task_repository
from resolver.evaluation.swe_bench import SweBenchInstance, import_instance, parse_instances
from resolver.evaluation.task_format import read_task_folder
from resolver.git.workspace import Workspace
from tests.parts.runs import git, make_checkout

LINE = {
    "instance_id": "ada__sums-1",
    "repo": "ada/sums",
    "base_commit": "0" * 40,
    "problem_statement": "add() subtracts",
    "patch": "",
    "test_patch": "x",
    "FAIL_TO_PASS": '["tests/test_sums.py::test_add"]',
    "PASS_TO_PASS": [],
}


def instance_of(repository: Path) -> SweBenchInstance:
    """Return the fix at the tip of a repository in the format of SWE-bench."""

    def diff(*paths: str) -> str:
        return git(repository, "diff", "HEAD~1", "HEAD", "--", *paths) + "\n"

    data = {
        **LINE,
        "base_commit": git(repository, "rev-parse", "HEAD~1"),
        "patch": diff("sums.py"),
        "test_patch": diff("tests"),
    }
    (instance,) = parse_instances(json.dumps(data) + "\n\n", "data.jsonl")
    return instance


@pytest.fixture
def fixed(tmp_path: Path) -> Path:
    """Return a repository whose second commit fixes what the first one does wrong."""
    repository = make_checkout(
        tmp_path / "sums",
        {"sums.py": "def add(a, b):\n    return a - b\n", "tests/__init__.py": ""},
    )
    (repository / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    (repository / "tests/test_sums.py").write_text("from sums import add\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Add properly (fixes #1)")
    return repository


def test_an_instance_becomes_a_task_without_the_future(tmp_path: Path, fixed: Path) -> None:
    source = Workspace.clone(str(fixed), tmp_path / "clone.git")
    import_instance(instance_of(fixed), source, tmp_path / "task", "python -m pytest")
    task = read_task_folder(tmp_path / "task")
    assert task.problem == ""
    assert task.hidden.command == "python -m pytest tests/test_sums.py"
    assert task.expected is not None
    assert task.expected.fail_to_pass == ("tests/test_sums.py::test_add",)
    assert task.hidden_files() == {"tests/test_sums.py": b"from sums import add\n"}
    assert b"+    return a + b" in (tmp_path / "task/solution/fix.patch").read_bytes()
    workspace = open_task_repository(task, tmp_path / "repository.git")
    assert workspace.git.text("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert workspace.base == git(fixed, "rev-parse", "HEAD~1")
    # Not even as an object that no ref leads to.
    tip = git(fixed, "rev-parse", "HEAD")
    assert workspace.git.attempt("cat-file", "-e", tip).status != 0


def test_the_scripts_of_a_task_are_valid_shell(tmp_path: Path, fixed: Path) -> None:
    source = Workspace.clone(str(fixed), tmp_path / "clone.git")
    import_instance(instance_of(fixed), source, tmp_path / "task", "python -m pytest")
    for script in (tmp_path / "task").rglob("*.sh"):
        subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"instance_id": "../x"}, "line 1: instance_id: String should match pattern"),
        ({"base_commit": "main"}, "line 1: base_commit"),
        ({"FAIL_TO_PASS": "[]"}, "line 1: FAIL_TO_PASS"),
        ({"FAIL_TO_PASS": "["}, "line 1"),
    ],
)
def test_a_wrong_line_is_named(changes: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        list(parse_instances(json.dumps({**LINE, **changes}), "data.jsonl"))
    assert says in caught.value.what


def test_a_commit_that_is_missing_is_named(tmp_path: Path, fixed: Path) -> None:
    source = Workspace.clone(str(fixed), tmp_path / "clone.git")
    (instance,) = parse_instances(json.dumps(LINE), "data.jsonl")
    with pytest.raises(WorkspaceError, match="has no commit 0000"):
        import_instance(instance, source, tmp_path / "task", "pytest")
