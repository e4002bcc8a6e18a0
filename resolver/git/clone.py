"""Creates the host's bare clone of a repository from a URL or a user's checkout.

The clone has one base commit with its history. Nothing is checked out, and a user's repository is
only read.
"""

import re
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from resolver.errors import WorkspaceError
from resolver.git.clone_cache import CloneCache
from resolver.git.git import Credential, HostGit, create_bare_repository, git_failure
from resolver.git.history import Remote, fetch_commits
from resolver.git.remote import OBJECT_ID, RefListing, check_url, list_refs

BASE_REF = "refs/resolver/base"
"""The ref of the clone that points to the base commit."""
STARTS_AT_REF = "refs/resolver/starts-at"
"""The ref of the commit that the work starts from, if the clone was moved to another branch."""


@dataclass(frozen=True)
class CloneBase:
    """The commit that was cloned, and its branch.

    branch: "" if the HEAD of a local checkout is detached.
    source_is_dirty: True if the local checkout has uncommitted changes.
    """

    commit: str
    branch: str
    source_is_dirty: bool = False


def is_url(source: str) -> bool:
    """Return True if the source is reached over the network, False if it is a path."""
    return "://" in source or re.match(r"[\w.-]+@[\w.-]+:", source) is not None


def repository_identity(source: str) -> str:
    """Return a name that distinguishes a repository from all others that a machine works on.

    For a URL, it is the server and the full name in lower case, because GitHub compares them
    without case. For a local checkout, it is the real path.
    """
    if is_url(source):
        parts = urlsplit(source)
        return f"{parts.netloc}{parts.path.rstrip('/').removesuffix('.git')}".lower()
    return str(Path(source).resolve())


def check_branch(git: HostGit, branch: str) -> str:
    """Return `refs/heads/<branch>`. Raises WorkspaceError if git doesn't accept that name."""
    name = f"refs/heads/{branch}"
    # A lone surrogate or a NUL can't be passed as an argument, so git can't be asked about it.
    is_safe_argument = branch.isprintable() and not branch.startswith("-")
    if not is_safe_argument or git.attempt("check-ref-format", name).status != 0:
        raise WorkspaceError(f"{branch!r} is not a valid branch name", "choose another name")
    return name


def check_commit(commit: str) -> str:
    """Return `commit`. Raises WorkspaceError unless it is a full object id."""
    if not OBJECT_ID.fullmatch(commit):
        raise WorkspaceError(f"{commit!r} is not a full commit id", "give all 40 hex digits")
    return commit


def read_commit_date(git: HostGit, commit: str) -> datetime:
    """Return the committer date of a commit. Raises WorkspaceError if there is no such commit."""
    # Not `git show`, which compares a commit without parents with nothing, even if it prints none.
    seconds = int(git.text("log", "-1", "--format=%ct", commit, "--"))
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):  # a date after the year 9999
        return datetime.max.replace(tzinfo=UTC)


def clone_url(
    url: str,
    folder: Path,
    branch: str | None,
    commit: str | None,
    depth: int,
    credential: Credential | None,
    cache: CloneCache | None = None,
    listing: RefListing | None = None,
) -> CloneBase:
    """Fetch one commit of a remote repository with its history into the new bare `folder`.

    branch: None for the default branch.
    commit: None for the tip of the branch.
    depth: number of levels of the commit graph, 0 for all.
    listing: refs that are known already. If the branch is not among them, the server is asked.

    Raises WorkspaceError if the branch or commit doesn't exist or can't be fetched.
    """
    check_url(url)
    ref = check_branch(HostGit(), branch) if branch is not None else None
    is_known = listing is not None and (ref is None or ref in listing.refs)
    if listing is None or not is_known:
        listing = list_refs(url, [ref] if ref else [], credential)
    if listing.default is None and (ref is None or ref not in listing.refs):
        raise WorkspaceError(
            f"{url} has no commit on its default branch", "push a first commit, then ask again"
        )
    ref = ref or listing.default or ""
    if commit is None and ref not in listing.refs:
        raise WorkspaceError(f"{url} has no branch {branch!r}", "check the branch's name")
    object_id = commit or listing.refs[ref]
    git = new_clone(folder)
    fetch_commits(git, Remote(url, credential, cache), {BASE_REF: object_id}, depth)
    return CloneBase(_read_base(git, object_id, url), ref.removeprefix("refs/heads/"))


def open_checkout(path: Path) -> HostGit:
    """Return git in a user's checkout or bare repository; raise WorkspaceError if it is neither."""
    git = HostGit(checkout=path.absolute())
    if not path.is_dir() or git.attempt("rev-parse", "--git-dir").status != 0:
        raise WorkspaceError(
            f"{path} is not the top of a git repository",
            "give the folder that holds .git, or run `git init` and commit there",
        )
    return git


def clone_checkout(
    path: Path, folder: Path, branch: str | None, commit: str | None, depth: int
) -> CloneBase:
    """Copy one commit of a user's checkout or bare repository into the new bare `folder`.

    It is HEAD if neither `branch` nor `commit` is given. Uncommitted changes are not copied. Raises
    WorkspaceError if there is no such commit.
    """
    path = path.absolute()
    git = open_checkout(path)
    revision = check_branch(git, branch) if branch is not None else "HEAD"
    result = git.attempt("rev-parse", "--verify", "--quiet", f"{commit or revision}^{{commit}}")
    if result.status != 0:
        missing = f"commit {commit}" if commit else f"branch {branch!r}" if branch else "commit yet"
        raise WorkspaceError(
            f"{path} has no {missing}", "commit something there, or check the name"
        )
    head = git.attempt("symbolic-ref", "--quiet", "HEAD").stdout.decode("utf-8", "replace").strip()
    commit_id = result.stdout.decode().strip()
    if len(commit_id) != 40:
        raise WorkspaceError(f"{path} has SHA-256 object ids, which GitHub does not support")
    target = new_clone(folder)
    try:
        fetch_commits(target, Remote(str(path)), {BASE_REF: commit_id}, depth)
    except WorkspaceError as error:
        raise _partial_clone_error(git, path) or error from error
    return CloneBase(
        commit=_read_base(target, commit_id, str(path)),
        branch=branch if branch is not None else head.removeprefix("refs/heads/"),
        source_is_dirty=_is_dirty(git),
    )


def _partial_clone_error(git: HostGit, path: Path) -> WorkspaceError | None:
    """Return the error for a checkout that can't be copied because it is a partial clone.

    Its missing objects are at a remote, from which only its owner can fetch: with the remote's
    credentials, and into the owner's repository.
    """
    remotes = git.attempt("config", "--get-regexp", r"^remote\..*\.promisor$").stdout.decode()
    if not remotes:
        return None
    remote = remotes.split()[0].removeprefix("remote.").removesuffix(".promisor")
    command = ["git", "-C", str(path), "fetch", "--refetch", "--no-filter", remote]
    return WorkspaceError(
        f"{path} is a partial clone, in which files of its commits are missing",
        f"fetch them: {shlex.join(command)}",
    )


def _is_dirty(git: HostGit) -> bool:
    if git.text("rev-parse", "--is-inside-work-tree") != "true":
        return False
    args = ("status", "--porcelain", "-z", "--ignore-submodules=all", "--no-renames")
    result = git.attempt(*args, limit=1)  # one byte says that there are changes
    if result.status != 0 and not result.truncated:
        raise git_failure(args, result)
    return bool(result.stdout)


def _read_base(git: HostGit, name: str, source: str) -> str:
    """Return the id of the fetched base. Raises WorkspaceError if it is not a commit."""
    peeled = git.attempt("rev-parse", "--verify", "--quiet", f"{BASE_REF}^{{commit}}")
    if peeled.status != 0:
        raise WorkspaceError(f"{name} in {source} is not a commit", "name a branch or a commit")
    return peeled.stdout.decode().strip()


def new_clone(folder: Path) -> HostGit:
    """Create a bare repository in the new or empty `folder` and return git in it."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise WorkspaceError(f"the clone's folder {folder} is not empty", "choose another folder")
    folder.chmod(0o700)
    return create_bare_repository(folder)
