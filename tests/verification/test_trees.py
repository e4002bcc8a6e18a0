"""The trees of a change tell what it does to the code from what it does to the tests."""

from pathlib import Path

import pytest

from resolver.models.verification import TreeName
from resolver.verification.trees import (
    MAX_EXPECTATIONS,
    MAX_LINES,
    MAX_TEXT_BYTES,
    ChangeTrees,
    build_trees,
    read_expectations,
)
from tests.git.trees import Changes, patch_of, write_base

BASE = {
    "bill.py": "1\n",
    "tests/test_a.py": "x = 1\ny = 2\nz = 3\n",
    "tests/test_b.py": "2\n",
    "tests/data/rates.csv": "1\n",
}


class Change:
    """A change to a repository. Texts are written, None deletes a file."""

    def __init__(self, folder: Path, files: Changes, base: Changes) -> None:
        self.workspace = write_base(folder / "clone.git", base)
        self.head = patch_of(self.workspace, files).tree
        self.trees: ChangeTrees = build_trees(self.workspace, self.head)

    def files(self, tree: TreeName) -> dict[str, str]:
        git, commit = self.workspace.git, self.trees.commits[tree]
        paths = git.text("ls-tree", "-r", "--name-only", commit).splitlines()
        return {path: git.run("cat-file", "blob", f"{commit}:{path}").decode() for path in paths}


def changed(folder: Path, files: Changes, base: Changes | None = None) -> Change:
    return Change(folder, files, base or BASE)


def test_a_change_without_tests_has_two_trees(tmp_path: Path) -> None:
    change = changed(tmp_path, {"bill.py": "2\n"})
    assert change.trees.trees.keys() == {"base", "head"}
    assert (change.trees.review, change.trees.altered_tests) == ((), ())


def test_new_tests_alone_need_no_tree_with_the_old_ones(tmp_path: Path) -> None:
    change = changed(tmp_path, {"bill.py": "2\n", "tests/test_new.py": "3\n"})
    assert change.trees.trees.keys() == {"base", "head", "base_with_tests"}
    assert change.files("base_with_tests") == {**BASE, "tests/test_new.py": "3\n"}
    assert change.trees.changed_tests == ("tests/test_new.py",)


def test_altered_and_deleted_tests_are_as_they_were_beside_the_new_code(tmp_path: Path) -> None:
    change = changed(
        tmp_path,
        {
            "bill.py": "2\n",
            "tests/test_a.py": None,
            "tests/test_b.py": "weaker\n",
            "tests/test_new.py": "3\n",
            "conftest.py": "passes everything\n",
        },
    )
    assert change.files("head_with_base_tests") == {**BASE, "bill.py": "2\n"}
    after = change.files("head")
    assert change.files("base_with_tests") == {**after, "bill.py": "1\n"}
    assert set(change.trees.altered_tests) == {"tests/test_a.py", "tests/test_b.py", "conftest.py"}


@pytest.mark.parametrize("path", ["conftest.py", "difflib.py", "bin/sh"])
def test_what_the_change_adds_to_replace_a_runner_is_not_beside_the_old_tests(
    tmp_path: Path, path: str
) -> None:
    """A change brings a plugin, a configuration or a program in place of the runner: the tests of
    the base are executed without it."""
    new = {path: "x\n"}
    change = changed(tmp_path, {"bill.py": "2\n", **new})
    assert change.files("head_with_base_tests") == {**BASE, "bill.py": "2\n"}
    assert change.files("base_with_tests") == {**BASE, **new}


def test_a_module_that_the_base_has_replaces_nothing(tmp_path: Path) -> None:
    change = changed(tmp_path, {"coverage/data.py": "2\n"}, {**BASE, "coverage/data.py": "1\n"})
    assert change.trees.trees.keys() == {"base", "head"}


@pytest.mark.parametrize("text", [BASE["tests/test_a.py"], "x = 1\ny = 2\nz = 4\n"])
def test_a_test_file_that_is_moved_is_where_it_was(tmp_path: Path, text: str) -> None:
    moved = {"tests/test_a.py": None, "tests/unit/test_a.py": text}
    change = changed(tmp_path, {"bill.py": "2\n", **moved})
    assert change.files("head_with_base_tests") == {**BASE, "bill.py": "2\n"}
    assert "tests/test_a.py" not in change.files("base_with_tests")


LONG = " " * MAX_TEXT_BYTES


def points(change: Change) -> list[tuple[str, str | None]]:
    return [(point.kind, point.path) for point in change.trees.review]


def test_tests_alone_are_named(tmp_path: Path) -> None:
    assert points(changed(tmp_path, {"tests/test_a.py": "2\n"})) == [("tests_only", None)]


@pytest.mark.parametrize(
    ("path", "old", "new", "kinds"),
    [
        ("package.json", '{"scripts": {"test": "a"}}', '{"scripts": {"test": "b"}}', ["manifest"]),
        ("package.json", '{"version": "1"}', '{"version": "2"}', []),
        pytest.param("package.json", "{}", "{}" + LONG, ["manifest"], id="long"),
        ("Makefile", "test:\n\tpytest\n", "test:\n\ttrue\n", ["manifest"]),
        (".agents/setup.sh", "pip install x", "pip install y", ["setup"]),
        ("src/lib.rs", "fn a() {}\n#[cfg(test)]\n", "fn a() {}\n#[cfg(test)]\n2", ["inline_tests"]),
        ("src/lib.rs", "fn a() {}\n#[cfg(test)]\n", "fn b() {}\n#[cfg(test)]\n", []),
        ("shop.py", '"""\n>>> a()\n1\n"""', '"""\n>>> a()\n2\n"""', ["doctests"]),
        ("shop.py", '"""\n>>> a()\n1\n"""\n', '"""Text.\n\n>>> a()\n1\n"""\nx = 1\n', []),
        ("src/lib.rs", "/// assert_eq!(1, 1)\n", "/// assert_eq!(1, 2)\n", ["doctests"]),
        ("tests/package.json", "{}", '{"scripts": {"test": "b"}}', ["tests_only"]),
    ],
)  # fmt: skip
def test_what_a_person_must_look_at(
    tmp_path: Path, path: str, old: str, new: str, kinds: list[str]
) -> None:
    change = changed(tmp_path, {path: new}, {**BASE, path: old})
    assert [kind for kind, _ in points(change)] == kinds


def test_the_altered_parts_of_a_test_are_shown_side_by_side(tmp_path: Path) -> None:
    change = changed(
        tmp_path, {"tests/test_a.py": "x = 1\ny = 5\nz = 3\n", "tests/test_b.py": None}
    )
    git, base = change.workspace.git, change.workspace.base
    found = read_expectations(git, base, change.head, change.trees.altered_tests)
    shown = [(part.path, part.old, part.new) for part in found]
    assert shown == [("tests/test_a.py", "y = 2", "y = 5"), ("tests/test_b.py", "2", "")]


def test_of_many_altered_parts_some_are_shown_and_of_a_long_file_none(tmp_path: Path) -> None:
    many, long = "1\nx\n" * (MAX_EXPECTATIONS + 1), "1\n" * (MAX_LINES + 1)
    old = {"tests/test_long.py": long, "tests/test_many.py": many}
    change = changed(tmp_path, {path: text.replace("1", "2") for path, text in old.items()}, old)
    git, base = change.workspace.git, change.workspace.base
    found = read_expectations(git, base, change.head, change.trees.altered_tests)
    assert [part.path for part in found] == ["tests/test_many.py"] * MAX_EXPECTATIONS
