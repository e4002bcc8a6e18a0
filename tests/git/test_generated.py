"""Tests of leaving caches and build output out of a change."""

import compileall
from pathlib import Path

from tests.git.scenario import Scenario, link, make_repository, open_scenario, plain_git, write


def _paths(scenario: Scenario) -> list[str]:
    return [file.path for file in scenario.export().files]


def test_byte_code_is_left_out_of_the_change_and_named(scenario: Scenario) -> None:
    compileall.compile_dir(str(scenario.root), quiet=1)
    write(scenario.root, "src/a.py", "x = 2\n")
    write(scenario.root, "__pycache__/top.pyc", b"\0")
    assert (scenario.root / "src/__pycache__").is_dir()
    assert _paths(scenario) == ["src/a.py"]
    # Named again the next time, and nothing of it is left in the agent's own repository.
    for _ in range(2):
        assert scenario.change()["generated"] == ["__pycache__/", "src/__pycache__/"]
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
    found = scenario.change()
    assert (found["generated"], found["left_out"]) == (sorted(set(KINDS.values())), [])
    assert _paths(scenario) == ["new.py"]


def test_files_that_may_be_source_stay(scenario: Scenario) -> None:
    for path in (
        "build/a.o", "dist/a.js", "target/a.class", ".coveragerc", "image.png", "bin/tool",
        "venv/notes.md", ".venv/notes.md", "node_modules.md", "coverage/report.py", "a.egg-info.md",
        "sample/pyvenv.cfg",
    ):  # fmt: skip
        write(scenario.root, path, b"\0\1\2")
    assert scenario.change()["generated"] == []
    expected = scenario.expected_tree()
    assert scenario.publish() == expected


def test_names_that_the_base_tracks_are_source_in_this_repository(tmp_path: Path) -> None:
    modules = "fixtures/node_modules"
    tracked: dict[str | bytes, bytes | str] = {f"{modules}/x/i.js": "1\n", "old.pyc": b"\0old"}
    scenario = open_scenario(make_repository(tmp_path / "source", tracked), tmp_path)
    for path in (f"{modules}/x/i.js", f"{modules}/y/i.js", "new.pyc"):
        write(scenario.root, path, "2\n")
    # Python's own folder is another name, and this repository tracks none of that.
    write(scenario.root, f"{modules}/z/__pycache__/z.txt", "4\n")
    assert scenario.change()["generated"] == [f"{modules}/z/__pycache__/"]
    assert _paths(scenario) == [f"{modules}/x/i.js", f"{modules}/y/i.js", "new.pyc"]


def test_files_that_a_gitignore_explicitly_includes_stay(scenario: Scenario) -> None:
    write(scenario.root, ".gitignore", "!keep.pyc\n")
    for name in ("keep.pyc", "drop.pyc"):
        write(scenario.root, name, b"\0")
    assert scenario.change()["generated"] == ["drop.pyc"]
    assert _paths(scenario) == [".gitignore", "keep.pyc"]


def test_a_change_of_caches_alone_is_empty(scenario: Scenario) -> None:
    write(scenario.root, ".hypothesis/unicode", "x\n")
    link(scenario.root, "node_modules", "/opt/node_modules")
    found = scenario.change()
    assert found["bundle"] is None and found["commit"] == scenario.workspace.base
    assert found["generated"] == [".hypothesis/", "node_modules"]
