"""Tests of leaving caches and build output out of a change."""

import compileall
from pathlib import Path

import pytest

from resolver.sandbox.change import export_change
from resolver.sandbox.wire import ChangeResult
from tests.git.scenario import (
    GIT,
    Scenario,
    link,
    make_repository,
    open_scenario,
    plain_git,
    write,
)

CODE: dict[str | bytes, bytes | str] = {"calc.py": "x = 1\n", "pkg/a.py": "y = 2\n"}


def _scenario(tmp_path: Path, files: dict[str | bytes, bytes | str]) -> Scenario:
    return open_scenario(make_repository(tmp_path / "source", {**CODE, **files}), tmp_path)


def _exported(scenario: Scenario) -> ChangeResult:
    return export_change(str(scenario.root), str(scenario.scratch), scenario.workspace.base, GIT)


def _paths(scenario: Scenario) -> list[str]:
    return [file.path for file in scenario.export().files]


def test_byte_code_is_left_out_of_the_change_and_named(tmp_path: Path) -> None:
    scenario = _scenario(tmp_path, {})
    compileall.compile_dir(str(scenario.root), quiet=1)
    write(scenario.root, "calc.py", "x = 2\n")
    assert (scenario.root / "pkg/__pycache__").is_dir()
    assert _paths(scenario) == ["calc.py"]
    assert _exported(scenario)["generated"] == ["__pycache__/", "pkg/__pycache__/"]
    # Named again the next time, and nothing of it is left in the agent's own repository.
    assert _exported(scenario)["generated"] == ["__pycache__/", "pkg/__pycache__/"]
    assert "__pycache__/" in plain_git(scenario.root, "status", "--porcelain")


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("web/node_modules/x/index.js", "web/node_modules/"),
        ("thing.egg-info/PKG-INFO", "thing.egg-info/"),
        (".tox/py/lib.py", ".tox/"),
        (".coverage", ".coverage"),
        (".coverage.host.12", ".coverage.host.12"),
        ("a.pyc", "a.pyc"),
        (".DS_Store", ".DS_Store"),
    ],
)
def test_every_kind_is_named_by_its_outermost_folder(tmp_path: Path, path: str, named: str) -> None:
    scenario = _scenario(tmp_path, {})
    write(scenario.root, path, "x\n")
    write(scenario.root, "new.py", "x = 1\n")
    found = _exported(scenario)
    assert (found["generated"], found["left_out"]) == ([named], [])
    assert _paths(scenario) == ["new.py"]


@pytest.mark.parametrize(
    "path",
    [
        "build/a.o", "dist/a.js", "target/a.class", ".coveragerc", "image.png", "bin/tool",
        "venv/notes.md", ".venv/notes.md", "node_modules.md", "coverage/report.py", "a.egg-info.md",
    ],
)  # fmt: skip
def test_files_that_may_be_source_stay(tmp_path: Path, path: str) -> None:
    scenario = _scenario(tmp_path, {})
    write(scenario.root, path, b"\0\1\2")
    assert _exported(scenario)["generated"] == []
    expected = scenario.expected_tree()
    assert scenario.publish() == expected


def test_a_virtual_environment_is_left_out(tmp_path: Path) -> None:
    scenario = _scenario(tmp_path, {})
    for folder in (".venv", "tools/venv"):
        write(scenario.root, f"{folder}/pyvenv.cfg", "home = /usr\n")
        write(scenario.root, f"{folder}/lib/x.py", "x = 1\n")
    write(scenario.root, "sample/pyvenv.cfg", "home = /usr\n")
    assert _exported(scenario)["generated"] == [".venv/", "tools/venv/"]
    assert _paths(scenario) == ["sample/pyvenv.cfg"]


def test_names_that_the_base_tracks_are_source_in_this_repository(tmp_path: Path) -> None:
    scenario = _scenario(tmp_path, {"fixtures/node_modules/x/index.js": "1\n", "old.pyc": b"\0old"})
    write(scenario.root, "fixtures/node_modules/x/index.js", "2\n")
    write(scenario.root, "fixtures/node_modules/y/index.js", "3\n")
    write(scenario.root, "new.pyc", b"\0new")
    # Python's own folder is another name, and this repository tracks none of that.
    write(scenario.root, "fixtures/node_modules/z/__pycache__/z.txt", "4\n")
    assert _exported(scenario)["generated"] == ["fixtures/node_modules/z/__pycache__/"]
    assert _paths(scenario) == [
        "fixtures/node_modules/x/index.js", "fixtures/node_modules/y/index.js", "new.pyc",
    ]  # fmt: skip


def test_files_that_a_gitignore_explicitly_includes_stay(tmp_path: Path) -> None:
    scenario = _scenario(tmp_path, {".gitignore": "!keep.pyc\n"})
    write(scenario.root, "keep.pyc", b"\0")
    write(scenario.root, "drop.pyc", b"\0")
    assert _exported(scenario)["generated"] == ["drop.pyc"]
    assert _paths(scenario) == ["keep.pyc"]


def test_a_change_of_caches_alone_is_empty(tmp_path: Path) -> None:
    scenario = _scenario(tmp_path, {})
    write(scenario.root, ".hypothesis/unicode", "x\n")
    link(scenario.root, "node_modules", "/opt/node_modules")
    found = _exported(scenario)
    assert found["bundle"] is None and found["commit"] == scenario.workspace.base
    assert found["generated"] == [".hypothesis/", "node_modules"]
