"""The files of a commit are read from git objects."""

from pathlib import Path

from resolver.verification.checks import discover_checks
from resolver.verification.project_tree import MAX_FILE, ProjectTree
from tests.git.trees import Changes, Link, write_base

FILES: Changes = {
    "pytest.ini": "[pytest]\n", "web/package.json": '{"scripts": {"test": "jest"}}',
    "large.json": " " * (MAX_FILE + 1), "odd\nname.py": "", "same.ini": "[pytest]\n",
    "link.ini": Link("/etc/passwd"),
}  # fmt: skip


def test_regular_files_of_the_commit_are_read(tmp_path: Path) -> None:
    workspace = write_base(tmp_path / "r.git", FILES)
    tree = ProjectTree.from_commit(workspace.git, workspace.base)
    assert tree.paths == ("large.json", "pytest.ini", "same.ini", "web/package.json")
    assert tree.text("pytest.ini") == "[pytest]\n"
    assert tree.read("link.ini") is None
    assert tree.read("large.json") is None
    assert set(tree.read_many(["pytest.ini", "same.ini", "none"])) == {"pytest.ini", "same.ini"}
    commands = [check.command for check in discover_checks(tree)]
    assert commands == ["python -m pytest", "cd web && npm test"]
