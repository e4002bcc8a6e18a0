"""Tests of the toolbox archive: its content, and when it is built."""

import fcntl
import os
import tarfile
import threading
from pathlib import Path

import pytest

from resolver.errors import SandboxError
from resolver.runtime.toolbox import ENTRY, PREFIX, Toolbox, find_patchelf, loader_of
from tests.parts.waiting import is_inside, until


@pytest.fixture(scope="module")
def archive(toolbox: Toolbox) -> Path:
    return toolbox.archive()


@pytest.fixture(scope="module")
def members(archive: Path) -> list[tarfile.TarInfo]:
    with tarfile.open(archive) as tar:
        return tar.getmembers()


def test_the_sandboxs_first_program_is_the_last_archive_member(
    members: list[tarfile.TarInfo],
) -> None:
    names = [member.name for member in members]
    assert names[-1] == str(Path(ENTRY).relative_to(PREFIX))
    assert len(names) == len(set(names))


def test_every_member_belongs_to_root_and_stays_inside(members: list[tarfile.TarInfo]) -> None:
    for member in members:
        assert (member.uid, member.gid) == (0, 0)
        assert not member.name.startswith(("/", ".."))
        assert member.isreg() or member.isdir() or member.issym(), member.name
        if member.issym():
            assert "/" not in member.linkname, member.name
        else:
            assert not member.mode & 0o6022, member.name


def test_the_toolbox_has_no_test_suites_and_stays_small(
    archive: Path, members: list[tarfile.TarInfo]
) -> None:
    assert not [m.name for m in members if "/idlelib/" in m.name or "/test/test_" in m.name]
    assert archive.stat().st_size < 200_000_000


def test_programs_of_the_toolbox_start_through_its_own_loader(
    archive: Path, tmp_path: Path
) -> None:
    with tarfile.open(archive) as tar:
        # Debian 12's Python 3.11.2 has no argument `filter`.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extract("libexec/git-core/git", tmp_path)
        tar.extract("bin/bash", tmp_path)
        libraries = {m.name for m in tar.getmembers() if m.name.startswith("lib/lib")}
    patchelf = find_patchelf()
    for name in ("libexec/git-core/git", "bin/bash"):
        loader = loader_of(patchelf, tmp_path / name)
        assert loader.parent == Path(PREFIX, "lib")
    assert any(name.startswith("lib/libc.") for name in libraries)


def test_the_toolbox_is_built_once_and_reused(toolbox: Toolbox, archive: Path) -> None:
    made = archive.stat()
    again = toolbox.archive()
    assert again == archive
    assert again.stat().st_mtime_ns == made.st_mtime_ns


def test_of_concurrent_builds_one_is_made_and_old_ones_are_removed(tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "cache"
    cache.mkdir(parents=True)
    (cache / "toolbox-old.tar").touch()
    os.utime(cache / "toolbox-old.tar", (0, 0))
    builds: list[Path] = []
    may_end, archives = threading.Event(), []

    def build(file: Path) -> None:
        builds.append(file)
        assert may_end.wait(60)
        file.write_text("built")

    toolbox = Toolbox(cache, build=build)
    threads = [
        threading.Thread(target=lambda: archives.append(toolbox.archive().read_text()))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    until(lambda: builds and any(is_inside(thread, "hold_lock") for thread in threads))
    may_end.set()
    for thread in threads:
        thread.join()
    assert archives == ["built"] * 2 and len(builds) == 1
    assert [path.name for path in cache.iterdir()] == [f"toolbox-{toolbox.key}.tar"]


def test_a_build_that_does_not_end_holds_nobody_up(tmp_path: Path) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    toolbox = Toolbox(tmp_path, build=lambda file: file.touch(), wait_seconds=0)
    assert toolbox.archive().is_file()
    os.close(other)


def test_without_git_the_error_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "bash").symlink_to("/bin/bash")
    with pytest.raises(SandboxError, match="git is not on PATH") as missing:
        Toolbox(tmp_path / "cache", path=str(tmp_path))
    assert "install git" in missing.value.next_step
