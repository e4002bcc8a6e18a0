"""Tests of finding fixes in a history, and of deciding which of them can be tasks."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from resolver.errors import SandboxError
from resolver.evaluation.history import (
    closed_issues,
    find_past_fixes,
    problem_text,
    read_fix_files,
    select_fixes,
)
from resolver.evaluation.qualification import ExecuteCheck, qualify
from resolver.git.git import HostGit
from resolver.models.verification import CaseResult, CaseStatus, CheckExecution, ProjectCheck
from resolver.verification.runner import TreeName
from tests.parts.runs import git, make_checkout

CHECK = ProjectCheck(name="pytest", command="pytest", report_format="junit")


@pytest.mark.parametrize(
    ("message", "issues"),
    [
        ("Fixes #12", (12,)),
        ("Handle it (closes #3, resolves: o/n#4)", (3, 4)),
        ("fix https://github.com/o/n/issues/77", (77,)),
        ("See #12 and prefix #13", ()),
        ("Fixes #12 and fixes #12", (12,)),
    ],
)
def test_issues_are_closed_by_the_keywords_of_github(message: str, issues: tuple[int, ...]) -> None:
    assert closed_issues(message) == issues


def test_the_text_of_a_message_has_no_trailers_and_references() -> None:
    message = "Add properly (fixes #1)\n\nIt subtracted.\n\nFixes #1\nSigned-off-by: Ada <a@b.c>\n"
    assert problem_text(message) == "# Add properly\n\nIt subtracted.\n"
    assert problem_text("Fixes #1") == ""


def commit(repository: Path, message: str, files: Mapping[str, str]) -> str:
    for name, text in files.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", message)
    return git(repository, "rev-parse", "HEAD")


def test_fixes_are_found_in_messages_and_in_the_commits_of_merges(tmp_path: Path) -> None:
    repository = make_checkout(tmp_path / "r", {"a.py": "a = 1\n"})
    first = commit(repository, "Two\n\nFixes #2", {"a.py": "a = 2\n", "tests/test_a.py": "x"})
    commit(repository, "Nothing about an issue", {"a.py": "a = 3\n", "tests/test_a.py": "y"})
    without_tests = commit(repository, "Four (fixes #4)", {"a.py": "a = 4\n"})
    git(repository, "checkout", "-q", "-b", "topic")
    commit(repository, "Five\n\nCloses #5", {"a.py": "a = 5\n", "test_b.py": "z"})
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "-m", "Merge pull request #9 from ada/topic", "topic")
    bare = HostGit(checkout=repository)
    fixes = list(find_past_fixes(bare, "HEAD"))
    assert [fix.issue for fix in fixes] == [5, 4, 2]
    assert [fix.commit for fix in fixes[1:]] == [without_tests, first]
    assert fixes[0].text == "# Five\n"
    assert read_fix_files(bare, fixes[0]).tests == {"test_b.py": b"z"}
    assert read_fix_files(bare, fixes[1]).reason == "no_tests"
    assert [fix.issue for fix in select_fixes(bare, fixes, 2)] == [5, 2]
    assert [fix.issue for fix in select_fixes(bare, fixes, 1)] == [5]


def execution(exit_code: int | None = 0, **tests: CaseStatus) -> CheckExecution:
    cases = tuple(CaseResult(id=name, status=status) for name, status in tests.items())
    return CheckExecution(exit_code=exit_code, seconds=0.1, cases=cases)


def scripted(results: Mapping[TreeName, list[CheckExecution]]) -> ExecuteCheck:
    """Return the results of each tree in turn, the last one again and again."""
    left = {tree: list(executions) for tree, executions in results.items()}

    def execute(tree: TreeName, _: ProjectCheck) -> CheckExecution:
        return left[tree].pop(0) if len(left[tree]) > 1 else left[tree][0]

    return execute


BASE = execution(a="passed")
BEFORE = execution(1, a="passed", b="failed")
AFTER = execution(a="passed", b="passed", c="passed")


def test_a_fix_is_usable_if_its_tests_fail_before_and_pass_with_it() -> None:
    results = {"base": [BASE], "base_with_tests": [BEFORE], "head": [AFTER]}
    found = qualify(scripted(results), [CHECK])
    assert found.reason == ""
    assert found.expected is not None
    assert found.expected.fail_to_pass == ("b", "c")
    assert found.expected.pass_to_pass == ("a",)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ([BEFORE], [BEFORE], "fails_with_fix"),
        ([AFTER], [AFTER], "passes_without_fix"),
        ([BEFORE], [AFTER, AFTER, BEFORE], "flaky"),
        ([BEFORE, BEFORE, AFTER], [AFTER], "flaky"),
        ([BEFORE], [execution(None)], "time_limit"),
        ([execution(None)], [AFTER], "time_limit"),
        ([BEFORE], [AFTER.model_copy(update={"report_complete": False})], "unreliable_report"),
        # The command fails and no test says why, or tells the two apart.
        ([execution(1, a="passed")], [BASE], "passes_without_fix"),
    ],
)
def test_a_fix_is_not_usable(
    before: list[CheckExecution], after: list[CheckExecution], reason: str
) -> None:
    results = {"base": [BASE], "base_with_tests": before, "head": after}
    assert qualify(scripted(results), [CHECK]).reason == reason


def test_the_next_check_is_tried_if_one_shows_nothing() -> None:
    other = CHECK.model_copy(update={"command": "pytest tests/test_a.py"})

    def execute(tree: TreeName, check: ProjectCheck) -> CheckExecution:
        if check == CHECK:
            raise SandboxError("lost")
        return {"base": BASE, "base_with_tests": BEFORE, "head": AFTER}[tree]

    assert qualify(execute, [CHECK]).reason == "sandbox_error"
    assert qualify(execute, [CHECK, other]).check == other
    assert qualify(execute, []).reason == "no_checks"


def test_a_check_without_a_report_counts_by_its_exit_code() -> None:
    check = ProjectCheck(name="make test", command="make test")
    results = {"base": [execution()], "base_with_tests": [execution(2)], "head": [execution()]}
    found = qualify(scripted(results), [check])
    assert found.expected is not None
    assert found.expected.fail_to_pass == ("make test",)
    assert found.expected.pass_to_pass == ()
