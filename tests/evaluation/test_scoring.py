"""Tests of the scorer: what resolves a task, and what a cheating change gets."""

from pathlib import Path

import pytest

from resolver.evaluation.scoring import build_scored_tree, score_execution
from resolver.evaluation.task_format import ExpectedTests
from resolver.git.workspace import Workspace
from resolver.models.verification import CaseResult, CaseStatus, CheckExecution, ProjectCheck
from tests.parts.runs import git, make_checkout

CHECK = ProjectCheck(name="hidden tests", command="pytest", report_format="junit")
EXPECTED = ExpectedTests(fail_to_pass=("new",), pass_to_pass=("old",))


def execution(exit_code: int | None = 0, **tests: CaseStatus) -> CheckExecution:
    cases = tuple(CaseResult(id=name, status=status) for name, status in tests.items())
    return CheckExecution(exit_code=exit_code, seconds=0.1, cases=cases)


@pytest.mark.parametrize(
    ("executed", "cause", "tests"),
    [
        (execution(new="passed", old="passed"), "", ()),
        (execution(new="passed", old="passed", more="skipped"), "", ()),
        (execution(1, new="failed", old="passed"), "tests_failed", ("new",)),
        (execution(new="skipped", old="passed"), "tests_failed", ("new",)),
        (execution(1, new="passed", old="failed"), "tests_broken", ("old",)),
        (execution(1, new="passed", old="passed", more="failed"), "tests_broken", ("more",)),
        (execution(None, new="passed", old="passed"), "time_limit", ()),
        # The report and the exit code contradict each other.
        (execution(1, new="passed", old="passed"), "tests_broken", ()),
        # The test is gone, or nothing is reported and the command succeeds.
        (execution(old="passed"), "tests_missing", ("new",)),
        (execution(), "tests_failed", ("new",)),
        (
            execution(new="passed", old="passed").model_copy(update={"report_complete": False}),
            "unreliable_report",
            (),
        ),
    ],
)
def test_a_task_is_resolved_if_every_expected_test_passes_and_nothing_fails(
    executed: CheckExecution, cause: str, tests: tuple[str, ...]
) -> None:
    score = score_execution(EXPECTED, CHECK, executed)
    assert (score.cause, score.tests, score.is_resolved) == (cause, tests, not cause)


def test_a_command_without_a_report_counts_by_its_exit_code() -> None:
    check = ProjectCheck(name="hidden tests", command="make test")
    expected = ExpectedTests(fail_to_pass=("hidden tests",))
    assert score_execution(expected, check, execution(0)).is_resolved
    assert score_execution(expected, check, execution(2)).cause == "tests_failed"


HIDDEN = {
    "tests/test_sums.py": b"from sums import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
}
FIX = """\
diff --git a/sums.py b/sums.py
--- a/sums.py
+++ b/sums.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""


class Change:
    """A repository in which a change is made, as an agent would."""

    def __init__(self, folder: Path) -> None:
        files = {
            "sums.py": "def add(a, b):\n    return a - b\n",
            "tests/test_old.py": "def test_old():\n    assert True\n",
            "pyproject.toml": '[project]\nname = "sums"\n',
        }
        self.folder = make_checkout(folder / "r", files)
        self.base = git(self.folder, "rev-parse", "HEAD")

    def write(self, path: str, text: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def scored(self, clone: Path) -> tuple[list[str], dict[str, str]]:
        """Return the kinds of the findings, and the files of the tree that is executed."""
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", "Change")
        workspace = Workspace.clone(str(self.folder), clone)
        tip, workspace = workspace.base, Workspace(clone, str(self.folder), self.base, "main")
        scored = build_scored_tree(workspace, tip, HIDDEN, FIX.encode())
        paths = workspace.git.text("ls-tree", "-r", "--name-only", scored.tree).splitlines()
        texts = {p: workspace.git.text("cat-file", "blob", f"{scored.tree}:{p}") for p in paths}
        return [finding.kind for finding in scored.tampering], texts


def test_the_hidden_tests_are_laid_over_the_result(tmp_path: Path) -> None:
    change = Change(tmp_path)
    change.write("sums.py", "def add(a, b):\n    return a + b\n")
    kinds, files = change.scored(tmp_path / "clone")
    assert kinds == []
    assert "assert add(2, 3) == 5" in files["tests/test_sums.py"]
    assert "a + b" in files["sums.py"]


@pytest.mark.attack
def test_what_an_agent_does_to_tests_does_not_count(tmp_path: Path) -> None:
    """A change edits hidden tests, deletes others, adds plugins: nothing of it has an effect."""
    change = Change(tmp_path)
    change.write("tests/test_sums.py", "def test_add():\n    assert True\n")
    change.write("conftest.py", "def pytest_runtest_makereport(item): ...\n")
    change.write("tests/conftest.py", "import os\nos._exit(0)\n")
    change.write("sitecustomize.py", "import os\nos._exit(0)\n")
    (change.folder / "tests/test_old.py").unlink()
    _, files = change.scored(tmp_path / "clone")
    assert sorted(files) == ["pyproject.toml", "sums.py", "tests/test_old.py", "tests/test_sums.py"]
    assert "assert add(2, 3) == 5" in files["tests/test_sums.py"]


@pytest.mark.attack
@pytest.mark.parametrize(
    ("path", "text"),
    [
        # Prints a report that says that all is well, and ends before a test runs.
        ("sums.py", "import os\n\nprint('1 passed')\nos._exit(0)\n"),
        # Behaves differently where it is tested.
        (
            "sums.py",
            "import sys\n\n\ndef add(a, b):\n    if 'pytest' in sys.modules:\n"
            "        return a + b\n    return a - b\n",
        ),
        # Answers the input of the test.
        (
            "sums.py",
            "def add(a, b):\n    if a == 2 and b == 3:\n        return 5\n    return a - b\n",
        ),
        # Takes the place of the runner.
        ("pytest.py", "print('1 passed')\n"),
        ("pytest/__init__.py", "print('1 passed')\n"),
        # Leaves tests out.
        (
            "pyproject.toml",
            '[project]\nname = "sums"\n[tool.pytest.ini_options]\naddopts = "-k old"\n',
        ),
    ],
)
def test_a_change_that_stands_between_code_and_report_scores_nothing(
    tmp_path: Path, path: str, text: str
) -> None:
    """A change makes the hidden tests seem to pass without a fix: it scores nothing."""
    change = Change(tmp_path)
    change.write(path, text)
    kinds, _ = change.scored(tmp_path / "clone")
    assert kinds != []
