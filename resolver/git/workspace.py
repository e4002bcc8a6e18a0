"""The host's own bare clone of one repository, in which a run starts and its change is judged.

Only the host has access to the clone. The sandbox gets a copy of the history as a tar stream and
returns its change as a bundle. No tree is ever checked out on the host. When the clone is moved to
another branch, the default branch remains the trusted one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from resolver.errors import WorkspaceError
from resolver.git.bundle import git_dir_tar, unbundle
from resolver.git.clone import (
    STARTS_AT_REF,
    check_branch,
    check_commit,
    clone_checkout,
    clone_url,
    is_url,
    repository_identity,
)
from resolver.git.clone_cache import CloneCache
from resolver.git.git import Credential, HostGit, git_failure
from resolver.git.history import HISTORY_LEVELS, Remote, fetch_commits
from resolver.git.pull_request import TRUSTED_REF, clone_pull_request, numbered_diff, read_patches
from resolver.git.remote import RefListing, list_refs
from resolver.git.tree import (
    GITLINK,
    SYMLINK,
    TreeEntry,
    decode_path,
    encode_path,
    read_blobs,
    read_patch,
    read_tree,
)
from resolver.models.pull_request import OpenPullRequest, PullRequestContext
from resolver.models.run import Patch

DIFF_LIMIT = 50_000_000
"""Default limit of a diff in bytes."""

READ_LIMIT = 1_000_000
"""Default limit of a file's content in bytes."""


@lru_cache(maxsize=4)
def _list_files(clone: Path, commit: str) -> Mapping[bytes, TreeEntry]:
    """Return the files, symlinks and submodules of a commit or tree, which never change, by path.

    Dozens of files are looked up during the preparation of a run.
    """
    return {entry.path: entry for entry in read_tree(HostGit(git_dir=clone), commit)}


@dataclass(frozen=True)
class Workspace:
    """A clone at one commit.

    folder: the bare repository.
    source: the URL or path it was cloned from.
    base: the commit that the work starts from.
    branch: the branch of the base, "" if the HEAD of a local checkout is detached.
    source_is_dirty: True if the local checkout had uncommitted changes. They are not in `base`.
    pull: the pull request whose head is the base, None on an issue.
    default: the commit of the default branch, None if it is the base.
    is_unmerged: True if the base is a commit of an open pull request.
    """

    folder: Path
    source: str
    base: str
    branch: str
    source_is_dirty: bool = False
    pull: PullRequestContext | None = None
    default: str | None = None
    is_unmerged: bool = False

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
        listing: RefListing | None = None,
    ) -> "Workspace":
        """Clone `source` (an HTTP(S) URL or the path of a local repository) into the new `folder`.

        branch: None for the default branch, or for the HEAD of a local checkout.
        commit: used instead of the tip of the branch, which may have moved since.
        depth: number of levels of history, 0 for all.
        cache: clones of earlier runs.
        listing: refs of a URL that are known already.

        Raises WorkspaceError if the repository can't be cloned.
        """
        folder = folder.absolute()
        if commit is not None:
            check_commit(commit)
        if is_url(source):
            base = clone_url(source, folder, branch, commit, depth, credential, cache, listing)
        else:
            base = clone_checkout(Path(source), folder, branch, commit, depth)
        return cls(folder, source, base.commit, base.branch, base.source_is_dirty)

    @classmethod
    def clone_pull_request(
        cls,
        source: str,
        folder: Path,
        pull: PullRequestContext,
        *,
        depth: int = HISTORY_LEVELS,
        credential: Credential | None = None,
        cache: CloneCache | None = None,
        for_merge: bool = False,
    ) -> "Workspace":
        """Clone `source` at the head of `pull` into the new `folder`.

        The `pull` of the result is completed with what git knows about the pull request. No file of
        the head is ever trusted, see `trusted`. for_merge: the base branch is to be merged into the
        head. Raises WorkspaceError if it can't be cloned.
        """
        folder = folder.absolute()
        completed, default = clone_pull_request(
            source, folder, pull, credential, cache, depth, for_merge=for_merge
        )
        return cls(
            folder,
            source,
            pull.head,
            f"pull/{pull.number}",
            pull=completed,
            default=default,
            is_unmerged=True,
        )

    @property
    def trusted(self) -> "Workspace":
        """The same clone at the default branch, which only people with write access can change.

        Everything that controls a run is read there. On an issue, that is the base itself.
        """
        if self.default is None:
            return self
        return replace(self, base=self.default, pull=None, default=None, is_unmerged=False)

    def pull_diff(self, show: Callable[[str], str] = str) -> str:
        """Return the diff of the pull request with line numbers and a length limit, "" on an issue.

        show: applied to the text of each line.
        """
        return numbered_diff(read_patches(self.git, self.pull), show) if self.pull else ""

    @property
    def git(self) -> HostGit:
        """Git in the bare clone."""
        return HostGit(git_dir=self.folder)

    def git_dir_tar(self, name: str) -> Iterator[bytes]:
        """Yield an uncompressed tar stream of a clean git directory for the sandbox to unpack.

        name: the directory's name in the tar.
        """
        return git_dir_tar(self.git, self.folder, self.base, self.branch, name)

    @property
    def identity(self) -> str:
        """The name that distinguishes the repository from all others; see `repository_identity`."""
        return repository_identity(self.source)

    def receive(
        self, bundle: Path | None, commit: str, tree: str, limit: int = DIFF_LIMIT
    ) -> Patch:
        """Check the sandbox's change, add its objects to the clone, and return it as a patch.

        The patch has no commit yet.

        bundle: None if the sandbox reports no change.
        commit, tree: the ids that the sandbox announced.
        limit: maximum length of the diff in bytes.

        Raises WorkspaceError if bundle, commit and tree don't match, or an object is invalid, and
        PolicyViolation for a forbidden name or too many files.
        """
        if bundle is not None:
            unbundle(self.git, bundle, self.base, commit, tree)
        elif commit != self.base or tree != self.git.text("rev-parse", f"{self.base}^{{tree}}"):
            raise WorkspaceError(
                "the sandbox announced a change and sent none", "nothing was published; run again"
            )
        return read_patch(self.git, self.base, tree, limit)

    def tree(self, commit: str) -> str:
        """Return the id of the tree of a commit in the clone."""
        return self.git.text("rev-parse", f"{check_commit(commit)}^{{tree}}")

    def read(self, path: str, commit: str | None = None, limit: int = READ_LIMIT) -> bytes | None:
        """Return the content of a file at `commit` (the base if None).

        None if there is no such file; symlinks and folders are not files. Raises WorkspaceError if
        the file has more than `limit` bytes.
        """
        commit_id = self.base if commit is None else check_commit(commit)
        entry = _list_files(self.folder, commit_id).get(encode_path(path))
        if entry is None or entry.mode in {SYMLINK, GITLINK}:
            return None
        result = self.git.attempt("cat-file", "blob", entry.id, limit=limit)
        if result.truncated:
            raise WorkspaceError(f"{path} has more than {limit} bytes", "make the file smaller")
        if result.status != 0:
            raise git_failure(("cat-file",), result, f"reading {path}")
        return result.stdout

    def read_trusted(self, path: str, limit: int = READ_LIMIT) -> bytes | None:
        """Return the content of a file at the default branch, as `read` does.

        Only people with write access can change that file.
        """
        return self.read(path, commit=self.trusted.base, limit=limit)

    def trusted_paths(self) -> tuple[str, ...]:
        """Return the paths of the files at the default branch, without symlinks and submodules."""
        entries = _list_files(self.folder, self.trusted.base)
        regular = (e for e in entries.values() if e.mode not in {SYMLINK, GITLINK})
        return tuple(decode_path(e.path) for e in regular)

    def lines_of(self, path: str) -> int | None:
        """Return the number of lines of a file of the base.

        None if there is no such file, or it is too large to be shown with line numbers.
        """
        try:
            content = self.read(path)
        except WorkspaceError:
            return None
        return None if content is None else len(content.splitlines())

    def symlinks(self, tree: str) -> dict[bytes, bytes]:
        """Return the target of every symlink of a tree (or commit) by path, both as raw bytes."""
        entries = _list_files(self.folder, tree)
        links = {path: entry.id for path, entry in entries.items() if entry.mode == SYMLINK}
        targets = dict(read_blobs(self.git, links.values()))
        return {path: targets[blob] for path, blob in links.items()}


def workspace_at_branch(
    workspace: Workspace, branch: str, credential: Credential | None
) -> Workspace:
    """Return the same clone with the tip of `branch` as its base.

    Raises WorkspaceError if there is no such branch.
    """
    ref = check_branch(workspace.git, branch)
    listing = list_refs(workspace.source, [ref], credential)
    if ref not in listing.refs:
        raise WorkspaceError(
            f"there is no branch {branch} to start from, which the setting base_branch names",
            "correct base_branch, or create the branch",
        )
    base = _fetch_commit(workspace, STARTS_AT_REF, listing.refs[ref], credential)
    return replace(workspace, base=base, branch=branch, default=workspace.base)


def workspace_at_pull_request(
    workspace: Workspace, pull: OpenPullRequest, credential: Credential | None
) -> Workspace:
    """Return the same clone with the head of a pull request of this repository as its base.

    Raises WorkspaceError if the commit doesn't exist any more.
    """
    base = _fetch_commit(workspace, STARTS_AT_REF, check_commit(pull.head), credential)
    return replace(
        workspace, base=base, branch=pull.branch, default=workspace.base, is_unmerged=True
    )


def with_default_branch(workspace: Workspace, credential: Credential | None) -> Workspace:
    """Return a clone at some branch with the tip of the default branch as its trusted commit.

    Does nothing if the clone is at the default branch. Raises WorkspaceError if the fetch fails.
    """
    listing = list_refs(workspace.source, [], credential)
    default = listing.default
    if default is None or default == f"refs/heads/{workspace.branch}":
        return workspace
    trusted = _fetch_commit(workspace, TRUSTED_REF, listing.refs[default], credential)
    return replace(workspace, default=trusted)


def _fetch_commit(
    workspace: Workspace, ref: str, commit: str, credential: Credential | None
) -> str:
    """Fetch a commit to a ref of the clone and return its id."""
    fetch_commits(workspace.git, Remote(workspace.source, credential), {ref: commit})
    return commit
