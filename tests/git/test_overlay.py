"""Tests of building a tree with some files of another one."""

from dataclasses import replace
from pathlib import Path

from resolver.git.overlay import overlay_tree
from resolver.git.tree import read_tree
from resolver.git.workspace import Workspace
from resolver.models.run import Patch
from resolver.runs.verify import build_trees
from tests.git.scenario import make_repository, plain_git, write


def _commit(repository: Path) -> str:
    plain_git(repository, "add", "-A")
    plain_git(repository, "commit", "-qm", "Change")
    return plain_git(repository, "rev-parse", "HEAD")


def test_only_the_chosen_files_are_overlaid_and_nothing_is_deleted(tmp_path: Path) -> None:
    repository = make_repository(
        tmp_path / "r",
        {"a.py": "1\n", "tests/test_a.py": "1\n", "tests/test_gone.py": "1\n", "tests/d": "x"},
    )
    base = plain_git(repository, "rev-parse", "HEAD")
    write(repository, "a.py", "2\n")
    write(repository, "tests/test_a.py", "2\n")
    (repository / "tests/test_gone.py").unlink()
    (repository / "tests/d").unlink()
    write(repository, "tests/d/test_ü.py", "3\n", 0o755)
    head = _commit(repository)
    workspace = Workspace.clone(str(repository), tmp_path / "clone.git")
    git = workspace.git
    made, paths = overlay_tree(git, base, head, lambda path: path.startswith("tests/"))
    assert paths == ("tests/d/test_ü.py", "tests/test_a.py")
    entries = {e.path.decode(): (e.mode, git.run("cat-file", "blob", e.id)) for e in
               read_tree(git, made)}  # fmt: skip
    assert entries == {
        "a.py": ("100644", b"1\n"),
        "tests/d/test_ü.py": ("100755", b"3\n"),
        "tests/test_a.py": ("100644", b"2\n"),
        "tests/test_gone.py": ("100644", b"1\n"),
    }


def test_a_file_that_was_renamed_is_in_its_new_place_only(tmp_path: Path) -> None:
    files = {"a.py": "1\n", "tests/test_a.py": "x = 1\ny = 2\nz = 3\n", "tests/test_b.py": "2\n"}
    repository = make_repository(tmp_path / "r", files)
    base = plain_git(repository, "rev-parse", "HEAD")
    plain_git(repository, "mv", "tests/test_a.py", "tests/test_c.py")
    write(repository, "tests/test_c.py", "x = 1\ny = 2\nz = 4\n")
    head = _commit(repository)
    workspace = Workspace.clone(str(repository), tmp_path / "clone.git")
    patch = Patch(base=base, tree=workspace.tree(head))
    trees = build_trees(replace(workspace, base=base), patch)
    assert trees.renamed_tests == {"tests/test_a.py": "tests/test_c.py"}
    assert trees.deleted_tests == ()
    made = {e.path.decode() for e in read_tree(workspace.git, trees.trees["base_with_tests"])}
    assert made == {"a.py", "tests/test_b.py", "tests/test_c.py"}


def test_the_unit_tests_of_a_source_file_are_taken_without_its_code(tmp_path: Path) -> None:
    module = "#[cfg(test)]\nmod tests {\n    // %s\n}\n"
    code = "fn a() {}\n\n"
    repository = make_repository(tmp_path / "r", {"src/lib.rs": code + module % "old"})
    base = plain_git(repository, "rev-parse", "HEAD")
    write(repository, "src/lib.rs", "fn b() {}\n\n" + module % "new")
    head = _commit(repository)
    workspace = Workspace.clone(str(repository), tmp_path / "clone.git")
    patch = Patch(base=base, tree=workspace.tree(head))
    trees = build_trees(replace(workspace, base=base), patch)
    assert trees.changed_tests == ("src/lib.rs",)
    made = workspace.read("src/lib.rs", trees.commits["base_with_tests"])
    assert made == (code + module % "new").encode()


def test_an_overlay_without_files_is_the_base(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": "1\n"})
    base = plain_git(repository, "rev-parse", "HEAD")
    write(repository, "a.py", "2\n")
    head = _commit(repository)
    workspace = Workspace.clone(str(repository), tmp_path / "clone.git")
    assert overlay_tree(workspace.git, base, head, lambda _: False) == (workspace.tree(base), ())
