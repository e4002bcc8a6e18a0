"""From a URL or a person's checkout to the host's own bare clone with one base commit.

Nothing is checked out, and a person's repository is only read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from resolver.errors import WorkspaceError
from resolver.workspace.git import Credential, HostGit, failure, fetching, new_bare

BASE_REF = "refs/resolver/base"
OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NOT_THERE = re.compile(r"not our ref|unadvertised object|(?:no such|find) remote ref")

# Mistakes that old tools left in the history of real repositories. They are about names, dates and
# spelling of modes, and harmless to read; a change that comes from a sandbox may have none of them.
_TOLERATED = (
    "zeroPaddedFilemode", "zeroPaddedDate", "badFilemode", "badTimezone", "badDate",
    "badDateOverflow", "badEmail", "badName", "missingEmail", "missingNameBeforeEmail",
    "missingSpaceBeforeEmail", "missingSpaceBeforeDate", "nulInCommit", "nullSha1",
    "missingTaggerEntry", "badTagName", "multipleAuthors",
)  # fmt: skip


@dataclass(frozen=True)
class Base:
    """What was cloned. `branch` is "" when a local checkout's HEAD is detached."""

    commit: str
    branch: str
    source_is_dirty: bool = False


def is_url(source: str) -> bool:
    """True for something that is reached over the network, False for a path."""
    return "://" in source or re.match(r"[\w.-]+@[\w.-]+:", source) is not None


def repository_identity(source: str) -> str:
    """What tells a repository from all others that one machine works on: server and full name, as
    GitHub compares them; of a local checkout its real path.
    """
    if is_url(source):
        parts = urlsplit(source)
        return f"{parts.netloc}{parts.path.rstrip('/').removesuffix('.git')}".lower()
    return str(Path(source).resolve())


def check_url(url: str) -> str:
    """`url` itself. Raises WorkspaceError unless it is plain HTTP(S) without a credential."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise WorkspaceError(
            f"{_without_userinfo(url)!r} is not an HTTPS address",
            "give the address that starts with https://, or the path of a local checkout",
        )
    if "@" in parts.netloc:
        raise WorkspaceError(
            f"the address {_without_userinfo(url)} holds a user name or password",
            "give the plain address; the token is set apart from it",
        )
    if not re.fullmatch(r"[\x21-\x7e]+", url):
        raise WorkspaceError(f"the address {url!r} holds blanks or control characters")
    return url


def _without_userinfo(url: str) -> str:
    return re.sub(r"//[^/]*@", "//", url)


def check_branch(git: HostGit, branch: str) -> str:
    """`refs/heads/<branch>`. Raises WorkspaceError when that is not a name git accepts."""
    name = f"refs/heads/{branch}"
    # A lone surrogate or NUL can't be an argument at all.
    sound = branch.isprintable() and not branch.startswith("-")
    if not sound or git.attempt("check-ref-format", name).status != 0:
        raise WorkspaceError(f"{branch!r} is not a valid branch name", "choose another name")
    return name


def check_commit(commit: str) -> str:
    """`commit` itself. Raises WorkspaceError unless it is a full object id."""
    if not OBJECT_ID.fullmatch(commit):
        raise WorkspaceError(f"{commit!r} is not a full commit id", "give all 40 hex digits")
    return commit


def commit_made_at(git: HostGit, commit: str) -> datetime:
    """When a commit was made, as it says itself. Raises WorkspaceError where there is none."""
    seconds = int(git.text("show", "-s", "--format=%ct", commit))
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):  # beyond the year 9999
        return datetime.max.replace(tzinfo=UTC)


def clone_url(
    url: str,
    folder: Path,
    branch: str | None,
    commit: str | None,
    depth: int,
    credential: Credential | None,
) -> Base:
    """Fetch one commit of a remote repository into the new bare `folder`."""
    check_url(url)
    git = HostGit()
    wanted = check_branch(git, branch) if branch is not None else None
    refs, default = list_refs(git, url, [wanted] if wanted else [], credential)
    if wanted is None and default is None:
        raise WorkspaceError(
            f"{url} has no default branch with a commit on it", "push a first commit, or name one"
        )
    wanted = wanted or default or ""
    if commit is None and wanted not in refs:
        raise WorkspaceError(f"{url} has no branch {branch!r}", "check the branch's name")
    some_id = commit or refs[wanted]
    target = _fetch(url, folder, commit or wanted, len(some_id), depth, credential)
    return Base(target, wanted.removeprefix("refs/heads/"))


def list_refs(
    git: HostGit, url: str, names: Sequence[str], credential: Credential | None
) -> tuple[dict[str, str], str | None]:
    """Commits by the full names of those refs that are there, and the name of the default branch,
    None where it has no commit."""
    args = ("ls-remote", "--symref", "--", url, "HEAD", *names)
    listed = git.attempt(*args, credential=credential)
    if listed.status != 0:
        raise failure(args, listed, f"reading {url}")
    return _parse_listing(listed.stdout.decode("utf-8", "surrogateescape"))


def _parse_listing(listing: str) -> tuple[dict[str, str], str | None]:
    refs: dict[str, str] = {}
    default = None
    for line in listing.splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: ") and name == "HEAD":
            default = value.removeprefix("ref: ")
        elif OBJECT_ID.fullmatch(value):
            refs[name] = value
    if default is not None and "HEAD" in refs:
        refs.setdefault(default, refs["HEAD"])
    return refs, default if default in refs else None


def open_checkout(path: Path) -> HostGit:
    """Git in a person's checkout or bare repository. Raises WorkspaceError where it is none."""
    git = HostGit(checkout=path.absolute())
    if not path.is_dir() or git.attempt("rev-parse", "--git-dir").status != 0:
        raise WorkspaceError(
            f"{path} is not the top of a git repository",
            "give the folder that holds .git, or run `git init` and commit there",
        )
    return git


def clone_checkout(
    path: Path, folder: Path, branch: str | None, commit: str | None, depth: int
) -> Base:
    """Copy one commit of a person's checkout (or bare repository) into the new bare `folder`.

    Without `branch` and `commit` that is HEAD. Uncommitted changes are not copied.
    """
    path = path.absolute()
    git = open_checkout(path)
    named = check_branch(git, branch) if branch is not None else "HEAD"
    found = git.attempt("rev-parse", "--verify", "--quiet", f"{commit or named}^{{commit}}")
    if found.status != 0:
        what = f"commit {commit}" if commit else f"branch {branch!r}" if branch else "commit yet"
        raise WorkspaceError(f"{path} has no {what}", "commit something there, or check the name")
    head = git.attempt("symbolic-ref", "--quiet", "HEAD").stdout.decode("utf-8", "replace").strip()
    resolved = found.stdout.decode().strip()
    target = _fetch(str(path), folder, resolved, len(resolved), depth, None)
    return Base(
        commit=target,
        branch=branch if branch is not None else head.removeprefix("refs/heads/"),
        source_is_dirty=_is_dirty(git),
    )


def _is_dirty(git: HostGit) -> bool:
    if git.text("rev-parse", "--is-inside-work-tree") != "true":
        return False
    status = git.run("status", "--porcelain", "-z", "--ignore-submodules=all", "--no-renames")
    return bool(status)


def _fetch(
    url: str,
    folder: Path,
    wanted: str,
    id_length: int,
    depth: int,
    credential: Credential | None,
) -> str:
    git = new_clone(folder, id_length)
    fetch(git, url, [f"{wanted}:{BASE_REF}"], [f"--depth={depth}"] if depth else [], credential)
    peeled = git.attempt("rev-parse", "--verify", "--quiet", f"{BASE_REF}^{{commit}}")
    if peeled.status != 0:
        raise WorkspaceError(f"{wanted} in {url} is not a commit", "name a branch or a commit")
    return peeled.stdout.decode().strip()


def new_clone(folder: Path, id_length: int) -> HostGit:
    """A bare repository of ours in the new or empty `folder`. id_length: of its object ids."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise WorkspaceError(f"the clone's folder {folder} is not empty", "choose another folder")
    folder.chmod(0o700)
    return new_bare(folder, wide=id_length == 64)


def fetch(
    git: HostGit,
    url: str,
    refspecs: Sequence[str],
    depth: Sequence[str],
    credential: Credential | None,
) -> None:
    """Fetch into a clone of ours, every object checked. depth: git's options for it."""
    args = fetching(url, refspecs, "--update-shallow", *depth)
    tolerated = [(f"fetch.fsck.{name}", "ignore") for name in _TOLERATED]
    done = git.attempt(*args, settings=tolerated, credential=credential)
    if done.status == 0:
        return
    wanted = [spec.partition(":")[0] for spec in refspecs]
    commits = [name for name in wanted if OBJECT_ID.fullmatch(name)]
    if commits and _NOT_THERE.search(done.stderr):
        missing = next((name for name in commits if name in done.stderr), commits[-1])
        raise WorkspaceError(
            f"{url} has no commit {missing} any more",
            "its branch was forced to another history: start a new run",
        )
    raise failure(args, done, f"cloning {url}")
