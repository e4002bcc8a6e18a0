"""Tests of leaving caches and build output out of a change."""

import compileall
from pathlib import Path

import pytest

from resolver.sandbox.change import export_change
from resolver.sandbox.wire import ChangeResult
from tests.git.scenario import (
    GIT,
    Scenario,
    copy_scenario,
    link,
    make_repository,
    open_scenario,
    plain_git,
    write,
)
from tests.parts.templates import Templates

CODE: dict[str | bytes, bytes | str] = {"calc.py": "x = 1\n", "pkg/a.py": "y = 2\n"}


def build_scenario(place: Path) -> Scenario:
    return open_scenario(make_repository(place / "source", CODE), place)


@pytest.fixture
def scenario(templates: Templates, tmp_path: Path) -> Scenario:
    return copy_scenario(templates, build_scenario, tmp_path)


def _exported(scenario: Scenario) -> ChangeResult:
    return export_change(str(scenario.root), str(scenario.scratch), scenario.workspace.base, GIT)


def _paths(scenario: Scenario) -> list[str]:
    return [file.path for file in scenario.export().files]


def test_byte_code_is_left_out_of_the_change_and_named(scenario: Scenario) -> None:
    compileall.compile_dir(str(scenario.root), quiet=1)
    write(scenario.root, "calc.py", "x = 2\n")
    assert (scenario.root / "pkg/__pycache__").is_dir()
    assert _paths(scenario) == ["calc.py"]
    # Named again the next time, and nothing of it is left in the agent's own repository.
    for _ in range(2):
        assert _exported(scenario)["generated"] == ["__pycache__/", "pkg/__pycache__/"]
    assert "__pycache__/" in plain_git(scenario.root, "status", "--porcelain")


KINDS = {
    "web/node_modules/x/index.js": "web/node_modules/",
    "thing.egg-info/PKG-INFO": "thing.egg-info/",
    ".tox/py/lib.py": ".tox/",
    ".coverage": ".coverage",
    ".coverage.host.12": ".coverage.host.12",
    "a.pyc": "a.pyc",
    ".DS_Store": ".DS_Store",
    ".venv/pyvenv.cfg": ".venv/",
    ".venv/lib/x.py": ".venv/",
    "tools/venv/pyvenv.cfg": "tools/venv/",
}
"""Generated files, and what is named for them."""


def test_every_kind_is_named_by_its_outermost_folder(scenario: Scenario) -> None:
    for path in KINDS:
        write(scenario.root, path, "x\n")
    write(scenario.root, "new.py", "x = 1\n")
    found = _exported(scenario)
    assert (found["generated"], found["left_out"]) == (sorted(set(KINDS.values())), [])
    assert _paths(scenario) == ["new.py"]


def test_files_that_may_be_source_stay(scenario: Scenario) -> None:
    for path in (
        "build/a.o", "dist/a.js", "target/a.class", ".coveragerc", "image.png", "bin/tool",
        "venv/notes.md", ".venv/notes.md", "node_modules.md", "coverage/report.py", "a.egg-info.md",
        "sample/pyvenv.cfg",
    ):  # fmt: skip
        write(scenario.root, path, b"\0\1\2")
    assert _exported(scenario)["generated"] == []
    expected = scenario.expected_tree()
    assert scenario.publish() == expected


def test_names_that_the_base_tracks_are_source_in_this_repository(tmp_path: Path) -> None:
    modules = "fixtures/node_modules"
    tracked: dict[str | bytes, bytes | str] = {f"{modules}/x/i.js": "1\n", "old.pyc": b"\0old"}
    scenario = open_scenario(make_repository(tmp_path / "source", {**CODE, **tracked}), tmp_path)
    for path in (f"{modules}/x/i.js", f"{modules}/y/i.js", "new.pyc"):
        write(scenario.root, path, "2\n")
    # Python's own folder is another name, and this repository tracks none of that.
    write(scenario.root, f"{modules}/z/__pycache__/z.txt", "4\n")
    assert _exported(scenario)["generated"] == [f"{modules}/z/__pycache__/"]
    assert _paths(scenario) == [f"{modules}/x/i.js", f"{modules}/y/i.js", "new.pyc"]


def test_files_that_a_gitignore_explicitly_includes_stay(scenario: Scenario) -> None:
    write(scenario.root, ".gitignore", "!keep.pyc\n")
    for name in ("keep.pyc", "drop.pyc"):
        write(scenario.root, name, b"\0")
    assert _exported(scenario)["generated"] == ["drop.pyc"]
    assert _paths(scenario) == [".gitignore", "keep.pyc"]


def test_a_change_of_caches_alone_is_empty(scenario: Scenario) -> None:
    write(scenario.root, ".hypothesis/unicode", "x\n")
    link(scenario.root, "node_modules", "/opt/node_modules")
    found = _exported(scenario)
    assert found["bundle"] is None and found["commit"] == scenario.workspace.base
    assert found["generated"] == [".hypothesis/", "node_modules"]
