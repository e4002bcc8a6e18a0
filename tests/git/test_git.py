"""Tests of running git on the host: limits and error messages."""

import os
from pathlib import Path

import pytest

from resolver.errors import WorkspaceError
from resolver.git.git import HostGit, create_bare_repository
from resolver.git.remote import OrphanCommit, write_orphans
from tests.git.scenario import make_repository, plain_git


def test_a_hanging_command_is_ended(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source")
    reading, writing = os.pipe()
    with (
        open(reading, "rb", buffering=0) as stdin,
        pytest.raises(WorkspaceError, match="cat-file did not end within 0 seconds"),
    ):
        HostGit(checkout=source).attempt("cat-file", "--batch", stdin=stdin, timeout=0.3)
    os.close(writing)


def test_output_is_truncated_at_the_limit(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", {"big": "x" * 5_000_000})
    done = HostGit(checkout=source).attempt("cat-file", "blob", "HEAD:big", limit=1000)
    assert done.truncated and len(done.stdout) == 1001
    whole = HostGit(checkout=source).attempt("cat-file", "blob", "HEAD:big", limit=5_000_000)
    assert not whole.truncated and len(whole.stdout) == 5_000_000


def test_a_transport_that_runs_commands_is_off(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source")
    plain_git(source, "config", "protocol.ext.allow", "always")
    mark = tmp_path / "mark"
    done = HostGit(checkout=source).attempt("ls-remote", f"ext::touch {mark}")
    assert done.status != 0 and not mark.exists()


def test_commits_without_parents_are_written(tmp_path: Path) -> None:
    git = create_bare_repository(tmp_path / "new.git")
    assert git.text("rev-parse", "--is-bare-repository") == "true"
    content = b"\x00done\nget-mark :9\n"
    given = OrphanCommit("refs/x", "Words", {"b": content, "a.jsonl": b""})
    first, second = write_orphans(git, [given, OrphanCommit("refs/y", "Other", {"c": b"1"})])
    assert len(first) == 40
    assert git.run("cat-file", "blob", f"{first}:b") == content
    assert git.text("ls-tree", "--name-only", first).split() == ["a.jsonl", "b"]
    assert git.text("show", "--no-patch", "--format=%s|%P|%an", second) == "Other||Resolver"
    assert git.attempt("fsck", "--strict").status == 0
