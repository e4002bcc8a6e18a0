"""Tests of finding fixes in a history."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from resolver.evaluation.history import (
    closed_issues,
    find_past_fixes,
    problem_text,
    read_fix_files,
    with_tests,
)
from resolver.git.git import HostGit
from tests.parts.runs import git, make_checkout


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
    assert read_fix_files(bare, fixes[2]).other == ("a.py",)
    assert [fix.issue for fix, _ in with_tests(bare, fixes)] == [5, 2]
