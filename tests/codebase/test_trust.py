"""A new read of a fork's files has to be listed here with why it decides nothing."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

UNTRUSTED_READS = {
    "resolver/git/conventions.py": "it is given the clone at the default branch",
    "resolver/git/policy.py": "the links of both trees are compared",
    "resolver/runs/check_sandboxes.py": "what the tree of the change installs, in its own sandbox",
    "resolver/runs/execute.py": "notes, counted lines and the diff, which the model gets as data",
}
"""Why a module may read files of the commit that the work starts from, which may be a fork's.

Whatever decides how a run works is read with `read_trusted`, `trusted_paths` or `trusted`.
"""


def test_files_of_a_fork_are_read_only_where_they_decide_nothing() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "resolver").rglob("*.py")
        if "workspace." in path.read_text() and any(_reads_of_base(ast.parse(path.read_text())))
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
