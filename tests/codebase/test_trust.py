"""A new kind of marker, or a new read of a fork's files, has to be listed here with a test."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_MARKER = re.compile(r"<!-- resolver:([a-z]+)")

FORGED_MARKERS = {
    "answer": "tests/github/test_github_publishing.py::test_a_marker_of_somebody_else_is_ignored",
    "check": "tests/conversation/test_placing.py::"
    "test_somebody_elses_issue_with_our_marker_is_not_ours",
    "refused": "tests/github/test_github_publishing.py::test_a_marker_of_somebody_else_is_ignored",
    "review": "tests/github/test_github_pulls.py::test_a_forged_marker_hides_no_review",
    "run": "tests/github/test_github_comments.py::test_a_forged_marker_has_no_effect",
    "thread": "tests/github/test_github_rounds.py::test_a_forged_marker_suppresses_no_reply",
}
"""The test in which somebody else writes a marker of this kind."""

UNTRUSTED_READS = {
    "resolver/git/conventions.py": "it is given the clone at the default branch",
    "resolver/git/policy.py": "the links of both trees are compared",
    "resolver/publishing/links.py": "a line number of the model is compared with the file's",
    "resolver/publishing/review.py": "a place of the model is compared with the file's",
    "resolver/runs/check_sandboxes.py": "what the tree of the change installs, in its own sandbox",
    "resolver/runs/execute.py": "notes, counted lines and the diff, which the model gets as data",
    "resolver/runs/prepare.py": "the code next to a review thread, which the model gets as data",
}
"""Why a module may read files of the commit that the work starts from, which may be a fork's.

Whatever decides how a run works is read with `read_trusted`, `trusted_paths` or `trusted`.
"""


def _sources() -> Iterator[tuple[str, str]]:
    for folder, pattern in (("resolver", "*.py"), ("prompts", "*.j2")):
        for path in sorted((ROOT / folder).rglob(pattern)):
            yield str(path.relative_to(ROOT)), path.read_text()


def test_each_kind_of_marker_is_forged_by_a_test() -> None:
    kinds = {kind for _, text in _sources() for kind in _MARKER.findall(text)}
    assert kinds == set(FORGED_MARKERS)


@pytest.mark.parametrize("test", sorted(set(FORGED_MARKERS.values())))
def test_a_test_that_forges_a_marker_exists(test: str) -> None:
    module, _, name = test.partition("::")
    text = (ROOT / module).read_text()
    assert f"\ndef {name}(" in text


def test_files_of_a_fork_are_read_only_where_they_decide_nothing() -> None:
    found = {
        path
        for path, text in _sources()
        if path.endswith(".py") and any(_reads_of_base(ast.parse(text)))
    }
    assert found == set(UNTRUSTED_READS)


def _reads_of_base(tree: ast.Module) -> Iterator[ast.Attribute]:
    """Yield each use of a method of a workspace that reads its base commit."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in {"read", "lines_of", "context", "symlinks", "pull_diff"}
            and ast.unparse(node.value).rpartition(".")[2] == "workspace"
        ):
            yield node
