"""Tests of creating commits through the API, with objects made by real git."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from resolver.errors import BranchTaken, ForgeError, WorkspaceError
from resolver.git.objects import read_local_commit
from resolver.git.tree import read_blobs
from resolver.git.workspace import Workspace
from resolver.models.repository import PublishedCommit
from tests.github.test_github_reading import BOT, NAME, forge_for
from tests.parts.github import GitHubServer
from tests.parts.github_server.bare import BareRepository, FileContent

BRANCH = "agent/issue-1-mend"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LINK = "a" * 40

BASE: Mapping[str, FileContent] = {
    "README.md": "hello\n",
    "src/a.py": "a = 1\n",
    "src/b.py": "b = 1\n",
    "folder/x": "x\n",
    "folder/y": "y\n",
    "run.sh": ("100755", "#!/bin/sh\n"),
    "link": ("120000", "README.md"),
    "plain": "now a file\n",
}

EVERY_KIND: Mapping[str, FileContent] = {
    "src/a.py": None,
    "src/z.py": "a = 1\n",
    "src/b.py": "b = 2\n",
    "blob.bin": bytes(range(256)) * 4,
    "win.txt": b"a\r\nb\rc\n",
    "run.sh": ("100644", "#!/bin/sh\n"),
    "README.md": ("100755", "hello\n"),
    "link": "a symlink becomes a file\n",
    "to": ("120000", "run.sh"),
    "plain": None,
    "plain/inside": "a file becomes a folder\n",
    "folder/x": None,
    "folder/y": None,
    "folder": "a folder becomes a file\n",
    "with space.txt": "1",
    "ü/日本.txt": "2",
    'quo"te.txt': "3",
    "tab\tname": "4",
}
"""A change with every kind of change in it: of text, of bytes, of modes, of names."""

SMALL: Mapping[str, FileContent] = {"src/a.py": "a = 2\n"}


class Host:
    """The host's clone, in which commits are made that nobody has a name for."""

    def __init__(self, folder: Path, github: GitHubServer) -> None:
        self.github, self.repository = github, github.create_repository(NAME, files=BASE)
        self.workspace = Workspace.clone(str(self.repository.git_dir), folder / "clone.git")
        self.git = BareRepository(self.workspace.folder)
        self.signer = forge_for(github).signer()

    def commit(
        self, files: Mapping[str, FileContent], message: str = "Mend it", parent: str = ""
    ) -> str:
        made = self.git.commit("made", files, message, "us", AT, parent or self.workspace.base)
        self.git.git("update-ref", "-d", "refs/heads/made")
        return made

    def tree(self, commit: str) -> str:
        return self.git.text("rev-parse", f"{commit}^{{tree}}")

    def put(self, commit: str, previous: str | None = None) -> PublishedCommit:
        git = self.workspace.git
        read = read_local_commit(git, commit)
        return self.signer.put(read, read_blobs(git, read.blobs), BRANCH, previous)


@pytest.fixture
def host(tmp_path: Path, github: GitHubServer) -> Host:
    return Host(tmp_path, github)


def test_every_change_has_the_same_tree_on_github_though_responses_are_lost(host: Host) -> None:
    made = host.commit(EVERY_KIND)
    for path in ("/git/blobs$", "/git/trees$", "/git/commits$", "/git/refs$"):
        host.github.cut_next("POST", path)
        host.github.cut_next("POST", path, after=True)
    placed = host.put(made).id
    assert host.repository.git.tip(BRANCH) == placed
    assert host.repository.git.text("rev-parse", f"{placed}^{{tree}}") == host.tree(made)
    assert host.repository.git.facts(placed)["parents"] == [{"sha": host.workspace.base}]
    host.repository.git.git("fsck", "--strict", "--no-dangling")


def test_github_signs_the_commit_and_names_its_author(host: Host) -> None:
    made = host.commit(SMALL, "Mend it\n\nCo-authored-by: Al <a@example.com>")
    placed = host.put(made)
    assert placed.signed and placed.id != made
    facts = host.repository.git.facts(placed.id)
    number = host.github.world.account(BOT).id
    assert facts["author"]["email"] == f"{number}+{BOT}@users.noreply.github.com"
    assert facts["committer"]["email"] == "noreply@github.com"
    assert facts["message"] == "Mend it\n\nCo-authored-by: Al <a@example.com>"


def test_a_submodule_is_named_and_not_uploaded(host: Host) -> None:
    made = host.commit({".gitmodules": '[submodule "s"]\n'})
    index = {"GIT_INDEX_FILE": str(host.workspace.folder / "index")}
    host.git.git("read-tree", made, env=index)
    host.git.git("update-index", "--add", "--cacheinfo", f"160000,{LINK},sub", env=index)
    tree = host.git.git("write-tree", env=index).decode().strip()
    with_link = host.git.git(
        "-c", "user.name=u", "-c", "user.email=u@x", "commit-tree", tree,
        "-p", host.workspace.base, "-m", "Add it",
    ).decode().strip()  # fmt: skip
    placed = host.put(with_link).id
    assert f"160000 commit {LINK}\tsub" in host.repository.git.text("ls-tree", placed)


def test_repeating_it_finds_the_existing_commit(host: Host) -> None:
    made = host.commit(SMALL)
    first = host.put(made)
    host.github.advance(60)
    writes = len(host.github.writes())
    assert host.put(made) == first
    assert len(host.github.writes()) == writes


def test_a_branch_with_another_commit_is_left_alone(host: Host) -> None:
    moved_tip = host.github.commit(NAME, BRANCH, {"theirs": "1"})
    with pytest.raises(BranchTaken):
        host.put(host.commit(SMALL))
    assert host.repository.git.tip(BRANCH) == moved_tip
    assert not host.github.writes()


def test_a_branch_that_moves_at_the_same_moment_is_not_forced(host: Host) -> None:
    first = host.put(host.commit({"one": "1"})).id
    host.git.git("fetch", "--quiet", str(host.repository.git_dir), f"{first}:refs/resolver/tip")
    second = host.commit({"two": "2"}, parent=first)
    moved_tip: list[str] = []

    def moving() -> Iterator[tuple[str, bytes]]:
        moved_tip.append(host.github.commit(NAME, BRANCH, {"theirs": "1"}))
        yield from read_blobs(git, made.blobs)

    git = host.workspace.git
    made = read_local_commit(git, second)
    with pytest.raises(BranchTaken):
        host.signer.put(made, moving(), BRANCH, first)
    assert host.repository.git.tip(BRANCH) == moved_tip[0]


@pytest.mark.parametrize(
    ("changes", "content"), [({"tree": "b" * 40}, b"a = 2\n"), ({}, b"else")], ids=["tree", "file"]
)
def test_what_gets_another_id_is_not_published(
    changes: dict[str, str], content: bytes, host: Host
) -> None:
    made = read_local_commit(host.workspace.git, host.commit(SMALL))
    with pytest.raises(ForgeError, match="nothing was published"):
        host.signer.put(made.model_copy(update=changes), [(made.blobs[0], content)], BRANCH, None)
    assert host.repository.git.tip(BRANCH) is None


def test_a_path_that_is_not_utf8_is_reported(host: Host) -> None:
    index = {"GIT_INDEX_FILE": str(host.workspace.folder / "index")}
    blob = host.git.git("hash-object", "-w", "--stdin", input=b"x").decode().strip()
    line = b"100644 " + blob.encode() + b"\tcaf\xe9\0"
    host.git.git("update-index", "-z", "--index-info", input=line, env=index)
    tree = host.git.git("write-tree", env=index).decode().strip()
    made = host.git.git(
        "-c", "user.name=u", "-c", "user.email=u@x", "commit-tree", tree,
        "-p", host.workspace.base, "-m", "Add",
    ).decode().strip()  # fmt: skip
    with pytest.raises(WorkspaceError, match="is not UTF-8"):
        read_local_commit(host.workspace.git, made)
