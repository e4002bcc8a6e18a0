"""The files of a commit are read from git objects."""

import subprocess
from pathlib import Path

import pytest

from resolver.git.git import HostGit
from resolver.verification.checks import discover_checks
from resolver.verification.project_tree import MAX_FILE, ProjectTree


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    files = {
        "pytest.ini": "[pytest]\n", "web/package.json": '{"scripts": {"test": "jest"}}',
        "large.json": " " * (MAX_FILE + 1), "odd\nname.py": "", "same.ini": "[pytest]\n",
    }  # fmt: skip
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "link.ini").symlink_to("/etc/passwd")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    for path in files:
        (tmp_path / path).unlink()
    return tmp_path


def test_regular_files_of_the_commit_are_read(checkout: Path) -> None:
    tree = ProjectTree.from_commit(HostGit(checkout=checkout), "HEAD")
    assert tree.paths == ("large.json", "pytest.ini", "same.ini", "web/package.json")
    assert tree.text("pytest.ini") == "[pytest]\n"
    assert tree.read("link.ini") is None
    assert tree.read("large.json") is None
    assert set(tree.read_many(["pytest.ini", "same.ini", "none"])) == {"pytest.ini", "same.ini"}
    commands = [check.command for check in discover_checks(tree)]
    assert commands == ["python -m pytest", "cd web && npm test"]
