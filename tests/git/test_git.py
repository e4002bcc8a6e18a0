"""Git on the host is bounded, and says what went wrong."""

import os
from pathlib import Path

import pytest

from resolver.errors import WorkspaceError
from resolver.git.git import HostGit
from tests.git.scene import make_repository, plain_git, write


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source")
    reading, writing = os.pipe()
    with (
        open(reading, "rb", buffering=0) as stdin,
        pytest.raises(WorkspaceError, match="cat-file did not end within 0 seconds"),
    ):
        HostGit(checkout=source).attempt("cat-file", "--batch", stdin=stdin, timeout=0.3)
    os.close(writing)


def test_output_is_cut_at_the_limit(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", {"big": "x" * 5_000_000})
    done = HostGit(checkout=source).attempt("cat-file", "blob", "HEAD:big", limit=1000)
    assert done.truncated and len(done.stdout) == 1001
    whole = HostGit(checkout=source).attempt("cat-file", "blob", "HEAD:big", limit=5_000_000)
    assert not whole.truncated and len(whole.stdout) == 5_000_000


def test_a_failure_has_gits_last_words(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match=r"git rev-parse failed: fatal: not a git repository"):
        HostGit(checkout=tmp_path).run("rev-parse", "HEAD")


def test_a_repositorys_settings_are_weaker_than_ours(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source")
    for name in ("core.hooksPath", "core.fsmonitor", "core.sshCommand", "protocol.ext.allow"):
        plain_git(source, "config", name, "/evil")
    write(source, ".git/hooks/x", "x\n")
    git = HostGit(checkout=source)
    assert git.text("config", "core.hooksPath") == "/dev/null"
    assert git.text("config", "core.fsmonitor") == "false"
    assert git.text("config", "core.sshCommand") == "false"


def test_a_transport_that_runs_commands_is_off(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source")
    plain_git(source, "config", "protocol.ext.allow", "always")
    mark = tmp_path / "mark"
    done = HostGit(checkout=source).attempt("ls-remote", f"ext::touch {mark}")
    assert done.status != 0 and not mark.exists()
