"""Tests of host-side file access below a folder that the sandbox writes to."""

import io
import os
import tarfile
import threading
from pathlib import Path

import pytest

from resolver.errors import SandboxError
from resolver.runtime.disk import (
    DiskWatch,
    bytes_below,
    open_below,
    remove_tree,
    unpack_below,
)
from tests.parts.nested_folders import make_nested_folders


def a_tar(*members: tarfile.TarInfo) -> tarfile.TarFile:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"new" * member.size))
    return tarfile.open(fileobj=io.BytesIO(stream.getvalue()))


def a_file(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = 3
    return member


def read(base: Path, path: Path) -> bytes:
    with open_below(base, str(path), os.O_RDONLY) as file:
        return os.read(file, 100)


def test_a_file_below_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("text")
    assert read(tmp_path, tmp_path / "a" / "b") == b"text"


@pytest.mark.parametrize("where", ["link", "folder/secret", "../secret", "missing"])
def test_links_and_paths_outside_are_refused(tmp_path: Path, where: str) -> None:
    outside, base = tmp_path / "outside", tmp_path / "base"
    outside.mkdir()
    base.mkdir()
    (outside / "secret").write_text("canary")
    (tmp_path / "secret").write_text("canary")
    (base / "link").symlink_to(outside / "secret")
    (base / "folder").symlink_to(outside)
    with pytest.raises(SandboxError):
        read(base, base / where)


def test_a_path_outside_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxError):
        read(tmp_path, Path("/etc/passwd"))


def test_unpacking_replaces_a_planted_link_instead_of_following_it(tmp_path: Path) -> None:
    marker, base = tmp_path / "marker", tmp_path / "base"
    marker.write_text("host")
    base.mkdir()
    (base / "checkout.tar").symlink_to(marker)
    with a_tar(a_file("checkout.tar")) as tar, open_folder(base) as folder:
        unpack_below(tar, folder)
    assert marker.read_text() == "host"
    assert (base / "checkout.tar").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["../escaped", "/escaped", "link/escaped"])
def test_unpacking_never_leaves_the_folder(tmp_path: Path, name: str) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "link").symlink_to(tmp_path)
    with (
        a_tar(a_file(name)) as tar,
        open_folder(base) as folder,
        pytest.raises((ValueError, OSError)),
    ):
        unpack_below(tar, folder)
    assert not (tmp_path / "escaped").exists()


def test_removing_copes_with_folders_without_permissions(tmp_path: Path) -> None:
    base, kept = tmp_path / "base", tmp_path / "kept"
    kept.mkdir(mode=0o755)
    (base / "closed" / "inner").mkdir(parents=True)
    (base / "link").symlink_to(kept)
    (base / "closed").chmod(0)
    remove_tree(base)
    assert not base.exists()
    assert kept.stat().st_mode & 0o777 == 0o755


def test_folders_nested_beyond_the_longest_path_are_measured_and_removed(tmp_path: Path) -> None:
    base = tmp_path / "base"
    (base / "0").mkdir(parents=True)
    make_nested_folders(base / "0", 60, b"x" * 50_000)
    make_nested_folders(base, 1)
    assert bytes_below(base) >= 50_000
    remove_tree(base)
    assert not base.exists()


def test_folders_too_deep_to_be_measured_end_the_sandbox(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    make_nested_folders(base, 1100)
    killed = threading.Event()
    watch = DiskWatch(lambda: bytes_below(base), killed.set, 10**9, pause=0.01)
    assert killed.wait(60)
    watch.close()
    assert "nested folders so deeply" in watch.reason
    remove_tree(base)
    assert not base.exists()


class open_folder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> int:
        self.fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        return self.fd

    def __exit__(self, *exc: object) -> None:
        os.close(self.fd)
