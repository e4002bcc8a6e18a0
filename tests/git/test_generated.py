"""Tests of leaving caches and build output out of a change."""

import compileall
import os
from pathlib import Path

import pytest

from resolver.sandbox.change import export_change
from resolver.sandbox.wire import ChangeResult
from tests.git.scene import (
    GIT,
    Scene,
    link,
    make_repository,
    open_scene,
    plain_git,
    write,
)

CODE: dict[str | bytes, bytes | str] = {"calc.py": "x = 1\n", "pkg/a.py": "y = 2\n"}


def _scene(tmp_path: Path, files: dict[str | bytes, bytes | str]) -> Scene:
    return open_scene(make_repository(tmp_path / "source", {**CODE, **files}), tmp_path)


def _exported(scene: Scene) -> ChangeResult:
    return export_change(str(scene.root), str(scene.scratch), scene.workspace.base, GIT)


def _paths(scene: Scene) -> list[str]:
    return [file.path for file in scene.export().files]


def test_byte_code_is_left_out_of_the_change_and_named(tmp_path: Path) -> None:
    scene = _scene(tmp_path, {})
    compileall.compile_dir(str(scene.root), quiet=1)
    write(scene.root, "calc.py", "x = 2\n")
    assert (scene.root / "pkg/__pycache__").is_dir()
    assert _paths(scene) == ["calc.py"]
    assert _exported(scene)["generated"] == ["__pycache__/", "pkg/__pycache__/"]
    # Named again the next time, and nothing of it is left in the agent's own repository.
    assert _exported(scene)["generated"] == ["__pycache__/", "pkg/__pycache__/"]
    assert "__pycache__/" in plain_git(scene.root, "status", "--porcelain")


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
    scene = _scene(tmp_path, {})
    write(scene.root, path, "x\n")
    write(scene.root, "new.py", "x = 1\n")
    found = _exported(scene)
    assert (found["generated"], found["left_out"]) == ([named], [])
    assert _paths(scene) == ["new.py"]


@pytest.mark.parametrize(
    "path",
    [
        "build/a.o", "dist/a.js", "target/a.class", ".coveragerc", "image.png", "bin/tool",
        "venv/notes.md", ".venv/notes.md", "node_modules.md", "coverage/report.py", "a.egg-info.md",
    ],
)  # fmt: skip
def test_files_that_may_be_source_stay(tmp_path: Path, path: str) -> None:
    scene = _scene(tmp_path, {})
    write(scene.root, path, b"\0\1\2")
    assert _exported(scene)["generated"] == []
    expected = scene.expected_tree()
    assert scene.publish() == expected


def test_a_virtual_environment_is_left_out(tmp_path: Path) -> None:
    scene = _scene(tmp_path, {})
    for folder in (".venv", "tools/venv"):
        write(scene.root, f"{folder}/pyvenv.cfg", "home = /usr\n")
        write(scene.root, f"{folder}/lib/x.py", "x = 1\n")
    write(scene.root, "sample/pyvenv.cfg", "home = /usr\n")
    assert _exported(scene)["generated"] == [".venv/", "tools/venv/"]
    assert _paths(scene) == ["sample/pyvenv.cfg"]


def test_names_that_the_base_tracks_are_source_in_this_repository(tmp_path: Path) -> None:
    scene = _scene(tmp_path, {"fixtures/node_modules/x/index.js": "1\n", "old.pyc": b"\0old"})
    write(scene.root, "fixtures/node_modules/x/index.js", "2\n")
    write(scene.root, "fixtures/node_modules/y/index.js", "3\n")
    write(scene.root, "new.pyc", b"\0new")
    # Python's own folder is another name, and this repository tracks none of that.
    write(scene.root, "fixtures/node_modules/z/__pycache__/z.txt", "4\n")
    assert _exported(scene)["generated"] == ["fixtures/node_modules/z/__pycache__/"]
    assert _paths(scene) == [
        "fixtures/node_modules/x/index.js", "fixtures/node_modules/y/index.js", "new.pyc",
    ]  # fmt: skip


def test_files_that_a_gitignore_explicitly_includes_stay(tmp_path: Path) -> None:
    scene = _scene(tmp_path, {".gitignore": "!keep.pyc\n"})
    write(scene.root, "keep.pyc", b"\0")
    write(scene.root, "drop.pyc", b"\0")
    assert _exported(scene)["generated"] == ["drop.pyc"]
    assert _paths(scene) == ["keep.pyc"]


def test_a_change_of_caches_alone_is_empty(tmp_path: Path) -> None:
    scene = _scene(tmp_path, {})
    write(scene.root, ".hypothesis/unicode", "x\n")
    link(scene.root, "node_modules", "/opt/node_modules")
    found = _exported(scene)
    assert found["bundle"] is None and found["commit"] == scene.workspace.base
    assert found["generated"] == [".hypothesis/", "node_modules"]


def test_many_and_oddly_named_caches_are_left_out(tmp_path: Path) -> None:
    scene = _scene(tmp_path, {})
    write(scene.root, b"odd [*]\\ \n\xff/.venv/pyvenv.cfg", "x\n")
    write(scene.root, b"odd [*] /.venv/pyvenv.cfg", "x\n")
    for number in range(150):
        write(scene.root, f"d{number}/__pycache__/x", "x\n")
    found = _exported(scene)
    assert len(found["generated"]) == 100
    assert "odd [*] /.venv/" in _paths_left_out(scene)
    # A line of an exclude file can't hold a line end: such a folder stays.
    assert len(_paths(scene)) == 1


def _paths_left_out(scene: Scene) -> list[str]:
    for number in range(150):
        os.unlink(scene.root / f"d{number}/__pycache__/x")  # noqa: PTH108
    return _exported(scene)["generated"]
