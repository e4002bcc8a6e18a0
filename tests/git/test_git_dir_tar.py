"""Tests of the git directory that a sandbox gets."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from resolver.git.workspace import Workspace
from tests.git.scenario import make_repository, plain_git


def unpack(workspace: Workspace, place: Path) -> tuple[Path, dict[str, tarfile.TarInfo]]:
    """Unpack the git directory for a sandbox; return its folder and the members of the tar."""
    data = b"".join(workspace.git_dir_tar(place.name))
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        members = {
            member.name.removeprefix(f"{place.name}/"): member for member in tar.getmembers()
        }
    subprocess.run(["tar", "-x", "-C", place.parent], input=data, check=True)
    # tar(5): whole blocks of 512 bytes, of which the last two are empty.
    assert data.endswith(bytes(1024)) and len(data) % 512 == 0
    return place, members


def test_a_git_directory_has_a_branch_whole_packs_and_is_writable(tmp_path: Path) -> None:
    workspace = Workspace.clone(str(make_repository(tmp_path / "source")), tmp_path / "clone")
    folder, members = unpack(workspace, tmp_path / "out")
    assert (folder / "HEAD").read_text() == "ref: refs/heads/main\n"
    assert plain_git(folder, "rev-parse", "HEAD") == workspace.base
    assert plain_git(folder, "fsck", "--full", "--strict") == ""
    for member in members.values():
        assert member.mode == (0o777 if member.isdir() else 0o666), member.name
    assert {name for name, member in members.items() if member.isdir()} == {
        "out", "refs", "refs/heads", "objects", "objects/info", "objects/pack",
    }  # fmt: skip
    suffixes = {Path(name).suffix for name in members if name.startswith("objects/pack/")}
    assert {".pack", ".idx"} <= suffixes <= {".pack", ".idx", ".rev"}
    assert "shallow" not in members
    assert plain_git(folder, "config", "core.bare") == "false"


@pytest.mark.parametrize("form", ["loose", "packed"])
def test_objects_outside_of_the_history_do_not_reach_the_sandbox(tmp_path: Path, form: str) -> None:
    source = make_repository(tmp_path / "source")
    workspace = Workspace.clone(str(source), tmp_path / "clone")
    other = plain_git(workspace.folder, "hash-object", "-w", "--stdin", stdin=b"private\n")
    if form == "packed":
        pack = str(workspace.folder / "objects/pack/pack")
        plain_git(workspace.folder, "pack-objects", "-q", pack, stdin=f"{other}\n".encode())
        plain_git(workspace.folder, "prune-packed", "-q")
    folder, _ = unpack(workspace, tmp_path / "out")
    names = plain_git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    assert other not in names
    expected = plain_git(source, "rev-list", "--objects", "--no-object-names", "HEAD")
    assert sorted(names.split()) == sorted(expected.split())
