"""A check is relevant if a changed file matches one of its globs."""

import pytest

from resolver.models.verification import ProjectCheck
from resolver.verification.relevant_checks import matches_glob, relevant_checks


@pytest.mark.parametrize(
    ("path", "glob", "expected"),
    [
        ("bill.py", "*.py", True), ("shop/bill.py", "*.py", False),
        ("shop/bill.py", "**/*.py", True),
        ("bill.py", "**/*.py", True), ("shop/a/bill.py", "shop/**", True),
        ("shop", "shop/**", True),
        ("shop/a/b.py", "shop/", True), ("shopping/a", "shop/**", False), ("a/b/c", "a/**/c", True),
        ("a/c", "a/**/c", True), ("a/b", "a/**/c", False), ("Bill.py", "bill.py", False),
        ("a/" * 500 + "b", "**/" * 500 + "c", False), ("a" * 4000, "*a" * 50 + "b", False),
    ],
)  # fmt: skip
def test_a_glob_matches_the_whole_path(path: str, glob: str, expected: bool) -> None:
    assert matches_glob(path, glob) is expected


def test_checks_without_paths_are_always_relevant() -> None:
    always = ProjectCheck(name="a", command="a")
    web = ProjectCheck(name="b", command="b", paths=("web/**", "*.json"))
    assert relevant_checks((always, web), ["README.md"]) == (always,)
    assert relevant_checks((always, web), ["README.md", "web/a.ts"]) == (always, web)
