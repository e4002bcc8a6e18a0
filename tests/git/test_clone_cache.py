"""Tests of the clone cache: what it saves, and who gets objects from it."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from resolver.errors import WorkspaceError
from resolver.git.clone_cache import CloneCache
from resolver.git.git import Credential
from resolver.git.workspace import Workspace
from tests.git.scenario import (
    TOKEN,
    Served,
    commit_all,
    enter_sandbox,
    make_repository,
    plain_git,
    serve_clone,
    write,
)


@dataclass
class Cloning:
    """Clones of a private repository over HTTP."""

    source: Path
    served: Served
    url: str

    def clone(self, folder: Path, cache: CloneCache | None, token: str = TOKEN) -> Workspace:
        self.served.server.sent = 0
        credential = Credential(self.served.credential.server_url, token)
        return Workspace.clone(self.url, folder, depth=5, credential=credential, cache=cache)

    @property
    def sent(self) -> int:
        """The bytes that the server has sent for the last clone."""
        return self.served.server.sent

    def push(self, text: str) -> str:
        write(self.source, "README.md", text)
        commit = commit_all(self.source, text)
        plain_git(self.source, "push", "-q", "--force", str(self.served.bare), "main")
        return commit


@pytest.fixture
def cloning(tmp_path: Path) -> Iterator[Cloning]:
    noise = "".join(f"{number * 7919 % 104729:x}\n" for number in range(60_000))
    source = make_repository(tmp_path / "source", {"README.md": "one\n", "large.txt": noise})
    with serve_clone(source, tmp_path) as served:
        yield Cloning(source, served, served.url)


def test_objects_of_an_earlier_run_are_not_sent_again(cloning: Cloning, tmp_path: Path) -> None:
    cache = CloneCache(tmp_path / "clones")
    cloning.clone(tmp_path / "1", cache)
    first = cloning.sent
    tip = cloning.push("two\n")
    workspace = cloning.clone(tmp_path / "2", cache)
    assert workspace.base == tip
    assert cloning.sent < first / 10
    cloning.clone(tmp_path / "3", cache)
    assert cloning.sent < first / 10
    root, _ = enter_sandbox(workspace, tmp_path)
    assert plain_git(root, "fsck", "--strict") == ""
    assert plain_git(root, "log", "--format=%s").splitlines() == ["two", "start"]
    assert "cached" not in plain_git(root, "for-each-ref")


@pytest.mark.attack
def test_the_cache_gives_no_more_than_the_server(cloning: Cloning, tmp_path: Path) -> None:
    """A clone is cached that others may not read: who may not read it on the server gets
    nothing."""
    cache = CloneCache(tmp_path / "clones")
    secret = cloning.push("secret\n")
    cloning.clone(tmp_path / "1", cache)
    with pytest.raises(WorkspaceError):
        cloning.clone(tmp_path / "2", cache, token="ghs_" + "other" * 8)
    assert not (tmp_path / "2").exists()
    # Taken back on the server: no clone has it any more.
    plain_git(cloning.source, "reset", "-q", "--hard", "HEAD~1")
    cloning.push("public\n")
    workspace = cloning.clone(tmp_path / "3", cache)
    found = workspace.git.attempt("cat-file", "-e", secret)
    assert found.status != 0
    for path in (tmp_path / "clones").rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes()


@pytest.mark.attack
def test_each_address_has_its_own_clone(cloning: Cloning, tmp_path: Path) -> None:
    """Two repositories have equal content: each has a cached clone of its own."""
    cache = CloneCache(tmp_path / "clones")
    cloning.clone(tmp_path / "1", cache)
    first = cloning.sent
    shutil.copytree(cloning.served.bare, cloning.served.bare.with_name("other.git"))
    cloning.url = cloning.url.replace("project", "other")
    cloning.clone(tmp_path / "2", cache)
    assert cloning.sent > first / 2
    assert len(list((tmp_path / "clones").glob("*.git"))) == 2


@pytest.mark.parametrize("defect", ["broken", "empty", "not a folder"])
def test_an_unusable_cache_is_ignored(cloning: Cloning, tmp_path: Path, defect: str) -> None:
    cache = CloneCache(tmp_path / "clones")
    tip = cloning.clone(tmp_path / "1", cache).base
    [cached] = (tmp_path / "clones").glob("*.git")
    shutil.rmtree(cached / "objects" if defect == "broken" else cached)
    if defect == "not a folder":
        shutil.rmtree(tmp_path / "clones")
        write(tmp_path, "clones", "x\n")
    workspace = cloning.clone(tmp_path / "2", cache)
    assert workspace.base == tip
    assert workspace.read("README.md") == b"one\n"
    assert cached.exists() == (defect == "empty")  # a damaged one is removed
