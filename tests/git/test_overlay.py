"""Tests of writing a tree that differs from another one in some entries."""

from pathlib import Path

from resolver.git.overlay import write_tree
from resolver.git.tree import ABSENT, TreeEntry, read_tree
from resolver.git.workspace import Workspace
from tests.git.scenario import make_repository


def test_entries_are_added_replaced_and_removed(tmp_path: Path) -> None:
    repository = make_repository(
        tmp_path / "r", {"a.py": "1\n", "b.py": "2\n", "tests/test_gone.py": "1\n", "tests/d": "x"}
    )
    workspace = Workspace.clone(str(repository), tmp_path / "clone.git")
    git = workspace.git
    blob = git.text("rev-parse", f"{workspace.base}:b.py")
    entries = [
        TreeEntry("tests/d/test_ü.py".encode(), "100755", blob),
        TreeEntry(b"tests/test_gone.py", ABSENT, "0" * 40),
    ]
    made = write_tree(git, workspace.base, entries)
    found = {e.path.decode(): (e.mode, git.run("cat-file", "blob", e.id)) for e in
             read_tree(git, made)}  # fmt: skip
    assert found == {
        "a.py": ("100644", b"1\n"),
        "b.py": ("100644", b"2\n"),
        "tests/d/test_ü.py": ("100755", b"2\n"),
    }
