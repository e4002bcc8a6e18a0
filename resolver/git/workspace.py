"""The host's own bare clone of one repository: where a run starts and where its change is judged.

The clone is the host's alone. The sandbox gets a copy of the history as a tar and gives its
change back as a bundle; no tree is ever checked out here.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from resolver.config.retries import NO_RETRIES, RetryPolicy
from resolver.errors import WorkspaceError
from resolver.git.bundle import unbundle
from resolver.git.clone import (
    check_commit,
    clone_checkout,
    clone_url,
    is_url,
    repository_identity,
)
from resolver.git.clone_cache import CloneCache
from resolver.git.context import context_tar
from resolver.git.git import Credential, HostGit
from resolver.git.gitdir import git_dir_tar
from resolver.git.numbered_diff import numbered_diff
from resolver.git.publish import (
    Identity,
    list_branches,
    push_branch,
    write_branch,
    write_commit,
)
from resolver.git.pull_request import clone_pull, read_patches
from resolver.git.tree import GITLINK, SYMLINK, read_blobs, read_patch, read_sizes, read_tree
from resolver.models.pull_request import PullRequestContext
from resolver.models.run import Patch

DIFF_LIMIT = 50_000_000
"""Most bytes of a diff that are kept when the caller names no limit."""

READ_LIMIT = 1_000_000


@dataclass(frozen=True)
class Workspace:
    """One clone at one commit.

    folder: the bare repository. base: the commit that the work starts from. branch: the branch it
    is on, "" when a local checkout's HEAD is detached. source: URL or path it was cloned from.
    source_is_dirty: the local checkout had uncommitted changes; they are not part of `base`.
    pull: the pull request whose head the base is, None on an issue. default: the default branch's
    commit where that is not the base.
    """

    folder: Path
    source: str
    base: str
    branch: str
    source_is_dirty: bool = False
    pull: PullRequestContext | None = None
    default: str = ""

    @classmethod
    def clone(
        cls,
        source: str,
        folder: Path,
        *,
        branch: str | None = None,
        commit: str | None = None,
        depth: int = 0,
        credential: Credential | None = None,
        cache: CloneCache | None = None,
    ) -> "Workspace":
        """Clone `source` (HTTP(S) URL, or path of a local repository) into the new `folder`.

        branch: the default branch (a local checkout's HEAD) when None. commit: taken in the place
        of the branch's tip, which may have moved on. depth: first-parent commits of history, 0 for
        all. cache: clones of earlier runs. Raises WorkspaceError.
        """
        folder = folder.absolute()
        if commit is not None:
            check_commit(commit)
        if is_url(source):
            base = clone_url(source, folder, branch, commit, depth, credential, cache)
        else:
            base = clone_checkout(Path(source), folder, branch, commit, depth)
        return cls(folder, source, base.commit, base.branch, base.source_is_dirty)

    @classmethod
    def clone_pull(
        cls,
        source: str,
        folder: Path,
        pull: PullRequestContext,
        *,
        depth: int = 0,
        credential: Credential | None = None,
        cache: CloneCache | None = None,
    ) -> "Workspace":
        """Clone `source` at the head of `pull`, into the new `folder`; `Workspace.pull` then has
        what git knows of it. No file of the head is ever trusted: see `trusted`. Raises
        WorkspaceError.
        """
        folder = folder.absolute()
        known, default = clone_pull(source, folder, pull, depth, credential, cache)
        return cls(folder, source, pull.head, f"pull/{pull.number}", pull=known, default=default)

    @property
    def trusted(self) -> "Workspace":
        """The same clone at the default branch, where only people with write access have written:
        what decides how the run works is read there. On an issue that is the base itself."""
        if not self.default:
            return self
        return replace(self, base=self.default, pull=None, default="")

    def pull_diff(self, show: Callable[[str], str] = str) -> str:
        """What the pull request changes, with line numbers and bounded; "" on an issue. show: how
        a line's text is written."""
        return numbered_diff(read_patches(self.git, self.pull), show) if self.pull else ""

    @property
    def git(self) -> HostGit:
        """Git in the bare clone."""
        return HostGit(git_dir=self.folder)

    def git_dir_tar(self) -> Iterator[bytes]:
        """An uncompressed tar stream of a clean git directory, for the sandbox to check out."""
        return git_dir_tar(self.git, self.folder, self.base, self.branch)

    @property
    def identity(self) -> str:
        """What tells the repository from all others; see `repository_identity`."""
        return repository_identity(self.source)

    def context(self, folder: str, dockerfile: str) -> Iterator[bytes]:
        """A folder of the base as the context of an image's build; see `context_tar`."""
        return context_tar(self.git, self.base, folder, dockerfile)

    def receive(
        self, bundle: Path | None, commit: str, tree: str, limit: int = DIFF_LIMIT
    ) -> Patch:
        """The sandbox's change, checked, as a patch without a commit of ours yet.

        bundle: None when the sandbox says that nothing changed. commit, tree: what the sandbox
        announced. limit: most bytes of diff that are kept. Raises WorkspaceError when bundle,
        commit and tree don't fit together or an object is unsound.
        """
        if bundle is not None:
            unbundle(self.git, bundle, self.base, commit, tree)
        elif commit != self.base or tree != self.git.text("rev-parse", f"{self.base}^{{tree}}"):
            raise WorkspaceError(
                "the sandbox announced a change and sent none", "nothing was published; run again"
            )
        return read_patch(self.git, self.base, tree, limit)

    def commit(
        self,
        patch: Patch,
        message: str,
        author: Identity,
        at: datetime,
        co_authors: Sequence[Identity] = (),
        parent: str | None = None,
        merged: str = "",
    ) -> Patch:
        """`patch` with our commit of its tree on the base. The same arguments, the same commit.

        parent: a commit that it is made on in the place of the base, as an earlier one of ours:
        the new one then holds what has changed since. merged: a second parent.
        """
        onto = patch.base if parent is None else check_commit(parent)
        made = write_commit(self.git, onto, patch.tree, message, author, at, co_authors, merged)
        return patch.model_copy(update={"commit": made})

    def tree(self, commit: str) -> str:
        """Id of the tree of a commit in the clone."""
        return self.git.text("rev-parse", f"{check_commit(commit)}^{{tree}}")

    def push(
        self,
        commit: str,
        branch: str,
        url: str,
        credential: Credential | None = None,
        retries: RetryPolicy = NO_RETRIES,
    ) -> None:
        """Create `branch` (`agent/...`) at `url` with exactly `commit`; again is a no-op.

        Raises BranchTaken when the branch holds something else, else WorkspaceError.
        """
        push_branch(self.git, commit, branch, url, credential, retries)

    def write_branch(self, path: Path, branch: str, commit: str) -> None:
        """Create `branch` (`agent/...`) in a person's local repository; again is a no-op.

        Working tree, index, HEAD, configuration and hooks are not touched. Raises BranchTaken
        when the branch holds something else, else WorkspaceError.
        """
        write_branch(self.git, self.base, path, branch, commit)

    @staticmethod
    def branches(where: str | Path, credential: Credential | None = None) -> frozenset[str]:
        """The `agent/...` branches at a URL (str) or in a local repository (Path)."""
        return list_branches(where, credential)

    def read(self, path: str, commit: str | None = None, limit: int = READ_LIMIT) -> bytes | None:
        """Content of a file at `commit` (the base when None).

        None when there is no such file; a symlink or a folder is not a file. Raises
        WorkspaceError when it has more than `limit` bytes.
        """
        where = self.base if commit is None else check_commit(commit)
        if {"", ".", ".."} & set(path.split("/")) or "\0" in path:
            return None
        found = self.git.run("ls-tree", "-z", "--full-tree", where, "--", path)
        record, _, _ = found.partition(b"\0")
        meta, _, name = record.partition(b"\t")
        if name != path.encode("utf-8", "surrogateescape"):
            return None
        mode, kind, blob = meta.decode("ascii").split(" ")
        if kind != "blob" or mode == SYMLINK:
            return None
        if read_sizes(self.git, [blob])[blob] > limit:
            raise WorkspaceError(f"{path} has more than {limit} bytes", "make the file smaller")
        return self.git.run("cat-file", "blob", blob)

    def read_trusted(self, path: str, limit: int = READ_LIMIT) -> bytes | None:
        """Content of a file at the default branch, where only people with write access have
        written; as `read`."""
        return self.read(path, commit=self.trusted.base, limit=limit)

    def trusted_paths(self) -> tuple[str, ...]:
        """Paths of the files at the default branch, symlinks and submodules left out."""
        entries = read_tree(self.git, self.trusted.base)
        regular = (e for e in entries if e.mode not in {SYMLINK, GITLINK})
        return tuple(e.path.decode("utf-8", "surrogateescape") for e in regular)

    def lines_of(self, path: str) -> int | None:
        """How many lines a file of the base has; None when there is no such file, or it is too
        large to be shown with line numbers."""
        try:
            content = self.read(path)
        except WorkspaceError:
            return None
        return None if content is None else len(content.splitlines())

    def symlinks(self, tree: str) -> dict[bytes, bytes]:
        """Every symlink of a tree (or commit) with its target, both as raw bytes."""
        links = {e.path: e.id for e in read_tree(self.git, tree) if e.mode == SYMLINK}
        targets = dict(read_blobs(self.git, links.values()))
        return {path: targets[blob] for path, blob in links.items()}
