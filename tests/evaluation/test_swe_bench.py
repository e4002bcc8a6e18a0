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


@pytest.mark.attack
@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"docker_image": "resolver-prepared:0123456789ab"}, "docker_image: .* made by Resolver"),
        ({"docker_image": "python\nRUN evil"}, "docker_image: .* not the name of an image"),
        ({"path": "tests/a\\tb.py"}, "files: .* a path in the repository"),
    ],
)
def test_an_instance_that_is_no_task_is_named(
    tmp_path: Path, fixed: Path, changes: dict[str, str], what: str
) -> None:
    """A data set from outside has images that only the engine has, and tests whose names have
    control characters: the error names the task."""
    source = Workspace.clone(str(fixed), tmp_path / "clone.git")
    instance = instance_of(fixed)
    if path := changes.pop("path", ""):
        patch = f'diff --git "a/{path}" "b/{path}"\nnew file mode 100644\n--- /dev/null\n'
        changes["test_patch"] = f'{patch}+++ "b/{path}"\n@@ -0,0 +1 @@\n+x\n'
    with pytest.raises(UsageError, match=f"the task ada__sums-1 can't be imported: .*{what}"):
        import_instance(instance.model_copy(update=changes), source, tmp_path / "task", "pytest")
    assert not (tmp_path / "task").exists()


@pytest.mark.attack
def test_half_a_surrogate_pair_in_an_instance_is_refused() -> None:
    """A data set from outside has a character in a patch that no file can have: the line is
    named."""
    with pytest.raises(UsageError, match=r"data\.jsonl, line 1: patch: "):
        list(parse_instances(json.dumps({**LINE, "patch": "\ud800"}), "data.jsonl"))
