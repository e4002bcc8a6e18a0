"""`resolver eval` from a history to a report, with the examples of the documentation."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from resolver.cli.main import run
from resolver.config.settings import Settings, load_settings
from resolver.evaluation.history import find_past_fixes, select_fixes
from resolver.evaluation.qualification import ExecuteCheck
from resolver.evaluation.results import read_evaluation
from resolver.evaluation.suite_maker import ExaminedFix, SuiteMaker
from resolver.evaluation.task_format import read_suite
from resolver.events.actions import CmdRun
from resolver.events.log import read_log
from resolver.git.workspace import Workspace
from resolver.models.verification import CaseResult, CheckExecution, ProjectCheck
from resolver.runs.wiring.sandbox import RunHost
from resolver.verification.runner import TreeName
from tests.parts.runs import git, make_checkout

SUMS = "def add(a, b):\n    return a {} b\n\n\ndef mul(a, b):\n    return a * b\n"
PYPROJECT = (
    '[project]\nname = "sums"\nversion = "1"\n[tool.pytest.ini_options]\npythonpath = ["."]\n'
)
TEST_ADD = "from sums import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
TEST_MUL = "from sums import mul\n\n\ndef test_mul():\n    assert mul(2, 3) == 6\n"

DOCS = (Path(__file__).parents[2] / "docs/how-to/evaluation.md").read_text()
HISTORY, RUN, REPORT = [
    line.split()[1:] for line in DOCS.splitlines() if line.startswith("    resolver eval")
][:3]
"""The first example of the documentation."""


def filled(words: list[str], **places: str) -> list[str]:
    """Return the words of an example without its redirection, with these values in their places."""
    end = words.index(">") if ">" in words else len(words)
    return [places.get(word, word) for word in words[:end]]


@pytest.fixture
def fixed(tmp_path: Path) -> Path:
    """Return a repository with a fix that has tests, and a tag on it."""
    files = {
        "sums.py": SUMS.format("-"),
        "pyproject.toml": PYPROJECT,
        "tests/test_mul.py": TEST_MUL,
    }
    repository = make_checkout(tmp_path / "sums", files)
    (repository / "sums.py").write_text(SUMS.format("+"))
    (repository / "tests/test_add.py").write_text(TEST_ADD)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "add() subtracts\n\nadd(2, 3) is -1.\n\nFixes #1")
    git(repository, "tag", "v1")
    return repository


def open_scripted(
    settings: Settings, host: RunHost, workspace: Workspace, commits: Mapping[TreeName, str]
) -> ExecuteCheck:
    """Return what answers as pytest would, without executing anything."""
    add, mul = "tests/test_add.py::test_add", "tests/test_mul.py::test_mul"

    def execute(tree: TreeName, check: ProjectCheck) -> CheckExecution:
        cases = [CaseResult(id=mul, status="passed")]
        if tree != "base":
            cases.append(CaseResult(id=add, status="passed" if tree == "head" else "failed"))
        return CheckExecution(exit_code=int(tree == "base_with_tests"), seconds=0, cases=cases)

    return execute


def make_suite(fixed: Path, folder: Path) -> list[ExaminedFix]:
    clone = Workspace.clone(str(fixed), folder / f"clone-{len(list(folder.iterdir()))}.git")
    host = RunHost({}, folder / "cache")
    maker = SuiteMaker(
        lambda values: load_settings({}, {}, values),
        host,
        clone,
        folder / "suite",
        "sums",
        open_scripted,
    )
    fixes = select_fixes(clone.git, find_past_fixes(clone.git, clone.base), 30)
    return maker.make(fixes, lambda _: None)


def test_a_usable_fix_becomes_a_task_and_is_not_examined_again(tmp_path: Path, fixed: Path) -> None:
    (examined,) = make_suite(fixed, tmp_path)
    assert (examined.reason, examined.fail_to_pass, examined.pass_to_pass) == ("", 1, 1)
    (task,) = read_suite(tmp_path / "suite")
    assert task.expected is not None
    assert task.expected.fail_to_pass == ("tests/test_add.py::test_add",)
    assert task.instruction == "# add() subtracts\n\nadd(2, 3) is -1.\n"
    assert task.hidden.base == git(fixed, "rev-parse", "HEAD~1")
    patch = (task.folder / "solution/fix.patch").read_text()
    assert "+    return a + b" in patch and "test_add" not in patch
    written = (task.folder / "task.toml").stat().st_mtime_ns
    assert make_suite(fixed, tmp_path) == [examined]
    assert (task.folder / "task.toml").stat().st_mtime_ns == written


def test_a_history_without_a_usable_fix_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = make_checkout(tmp_path / "r", {"a.py": "a = 1\n"})
    (repository / "test_a.py").write_text("def test_a(): pass\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Test a\n\nFixes #3")
    command = filled(HISTORY, PATH=str(repository), SUITE=str(tmp_path / "suite"))
    assert run(command, {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}) == 3
    shown = capsys.readouterr()
    assert "0 of 1 fix can be tasks" in shown.out
    assert "not usable, it changes only tests" in shown.err


@pytest.mark.attack
def test_an_agent_that_looks_for_the_fix_does_not_find_it(
    tmp_path: Path, fixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An agent searches clone, suite and results for the fix and the tests: they are not there."""
    make_suite(fixed, tmp_path)
    suite, output = tmp_path / "suite", tmp_path / "results"
    searches = [
        "git log --all --oneline --reflog; git tag; git for-each-ref; git fsck --lost-found",
        "for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do"
        " git cat-file -p $o; done",
        f"ls -A {suite} {output}; cat {suite}/*/solution/fix.patch {suite}/*/tests/files/tests/*",
        "grep -rl 'add(2, 3) == 5' . .git; ls tests",
    ]
    finds = [{"calls": [{"execute_bash": {"command": command}}]} for command in searches]
    done = {"calls": [{"finish": {"message": "Done", "task_completed": "true"}}]}
    replies = tmp_path / "replies.yml"
    replies.write_text(json.dumps([*finds, done]))
    environment = {
        "HOME": str(tmp_path / "home"),
        "PATH": os.environ["PATH"],
        "RESOLVER_RUNTIME": "local",
        "RESOLVER_VERIFY": "false",  # the verdict is no matter of the scorer
    }
    command = filled(RUN, SUITE=str(suite), RESULTS=str(output), nop=f"scripted:{replies}")
    assert run(command, environment) == 0
    oracle, other = read_evaluation(output).results
    assert (oracle.resolved, oracle.cause, oracle.has_change) == (True, "", True)
    assert (other.resolved, other.cause, other.verdict) == (False, "no_change", "not_verified")

    events = list(read_log(next(output.glob("scripted-*/*/output/events.jsonl"))))
    actions = {event.id for event in events if isinstance(event, CmdRun)}
    seen = "\n".join(str(getattr(e, "content", "")) for e in events if e.cause in actions)
    assert len(actions) == len(searches)
    assert "Begin" in seen and "a - b" in seen
    for future in ("Fixes #1", "v1", "a + b", "add(2, 3) == 5", "def test_add"):
        assert future not in seen

    capsys.readouterr()
    assert run(filled(REPORT, RESULTS=str(output)), environment) == 0
    page = capsys.readouterr().out
    assert "trace.html" in page and "+    return a + b" in page
    # Repeated, the command executes nothing.
    before = {path: path.stat().st_mtime_ns for path in output.rglob("result.json")}
    assert run(command, environment) == 0
    assert {path: path.stat().st_mtime_ns for path in output.rglob("result.json")} == before
