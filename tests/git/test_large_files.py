"""Tests that changes of large files give the same tree as git."""

import os
import subprocess
from pathlib import Path

import pytest

from resolver.sandbox.change import export_change
from tests.git.scenario import (
    GIT,
    Scenario,
    commit_all,
    copy_scenario,
    link,
    make_repository,
    open_scenario,
    write,
)
from tests.parts.templates import Templates

BIG = os.urandom(330_000)
TEXT = b"a line of text\r\n" * 26_000
BASE: dict[str | bytes, bytes | str] = {
    "changed.bin": BIG,
    "touched.bin": BIG[::-1],
    "moved.bin": BIG[1:],
    "gone.bin": BIG[2:],
    "tool.bin": BIG[3:],
    "small": "small\n",
    "folder/inside": "inside\n",
    "file": "a file\n",
    "linked/inside.bin": BIG[4:],
    "crlf.auto": TEXT,
    "line\nend \xff.bin".encode("latin-1"): BIG[5:],
    ".gitattributes": "*.auto text=auto\n*.crlf text eol=crlf\n*.id ident\n*.wide "
    "working-tree-encoding=UTF-16\n*.clean filter=absent\n*.raw -text -filter\n",
}


def build_scenario(place: Path) -> Scenario:
    return open_scenario(make_repository(place / "source", BASE), place)


@pytest.fixture
def scenario(templates: Templates, tmp_path: Path) -> Scenario:
    return copy_scenario(templates, build_scenario, tmp_path)


def check(scenario: Scenario) -> None:
    change = scenario.export()
    assert change.tree == scenario.expected_tree()
    assert scenario.publish(change) == change.tree


def test_every_kind_of_change_of_a_large_file(scenario: Scenario, tmp_path: Path) -> None:
    root = scenario.root
    write(root, "changed.bin", b"new" + BIG)
    (root / "touched.bin").touch()
    (root / "moved.bin").rename(root / "moved there.bin")
    (root / "gone.bin").unlink()
    (root / "tool.bin").chmod(0o755)
    write(root, b"line\nend \xff.bin", b"new" + BIG[5:])
    write(root, "new.bin", b"0" + BIG)
    write(root, "copy of new.bin", b"0" + BIG)
    (root / "file").unlink()
    write(root, "file/below.bin", b"1" + BIG)
    write(root, "-n", b"2" + BIG)
    write(root, ":(top)x", b"3" + BIG)
    write(root, "deep/er/new.bin", b"4" + BIG)
    subprocess.run(["rm", "-r", root / "folder"], check=True)
    write(root, "folder", b"5" + BIG)
    write(tmp_path, "outside/inside.bin", b"6" + BIG)
    subprocess.run(["rm", "-r", root / "linked"], check=True)
    link(root, "linked", str(tmp_path / "outside"))
    link(root, "link.bin", "changed.bin")
    write(root, "small", b"7" + BIG)
    check(scenario)


@pytest.mark.parametrize("name", ["x.auto", "x.crlf", "x.id", "x.clean", "x.raw", "x.other"])
def test_files_that_git_converts_are_converted(scenario: Scenario, name: str) -> None:
    write(scenario.root, name, TEXT + b"$Id$\n")
    check(scenario)


def test_encodings_and_late_attributes_count(scenario: Scenario) -> None:
    write(scenario.root, "x.wide", TEXT.decode().encode("utf-16"))
    write(scenario.root, "sub/.gitattributes", "*.bin text\n")
    write(scenario.root, "sub/x.bin", TEXT)
    check(scenario)


def test_ignored_large_files_are_left_out(scenario: Scenario) -> None:
    write(scenario.root, ".gitignore", "*.log\n")
    write(scenario.root, "x.log", BIG[9:])
    write(scenario.root, "y.bin", BIG[9:])
    assert sorted(f.path for f in scenario.export().files) == [".gitignore", "y.bin"]


def test_touched_large_files_are_no_change(scenario: Scenario) -> None:
    for name in ("touched.bin", "changed.bin"):
        os.utime(scenario.root / name, (1, 1))
    assert export(scenario)["bundle"] is None


def test_content_of_the_history_can_be_restored(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", {"x.bin": BIG})
    write(source, "x.bin", BIG[1:])
    commit_all(source, "another")
    scenario = open_scenario(source, tmp_path)
    write(scenario.root, "x.bin", BIG)
    write(scenario.root, "y.bin", BIG[2:])
    check(scenario)


def test_a_change_can_be_exported_twice(scenario: Scenario) -> None:
    write(scenario.root, "new.bin", b"0" + BIG)
    first = scenario.export()
    write(scenario.root, "more.bin", b"1" + BIG)
    assert scenario.export().tree != first.tree
    check(scenario)


def test_a_small_change_of_a_large_file_is_small(scenario: Scenario) -> None:
    write(scenario.root, "changed.bin", BIG[:100_000] + b"new" + BIG[100_000:])
    size = export(scenario)["size"]
    assert isinstance(size, int) and len(BIG) > 20 * size


def test_a_pipe_next_to_a_large_file_is_left_out(scenario: Scenario) -> None:
    write(scenario.root, "new.bin", b"0" + BIG)
    os.mkfifo(scenario.root / "pipe")
    assert [f.path for f in scenario.export().files] == ["new.bin"]


def export(scenario: Scenario) -> dict[str, object]:
    base = scenario.workspace.base
    return dict(export_change(str(scenario.root), str(scenario.scratch), base, GIT))
