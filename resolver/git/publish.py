"""Writes Resolver's commit and publishes it on a branch.

Nothing is forced or checked out, and no branch is written whose name doesn't start with `agent/`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from resolver.config.retries import NO_RETRIES, RetryPolicy
from resolver.errors import WorkspaceError
from resolver.git.branch_names import PREFIX
from resolver.git.clone import check_branch, check_commit, open_checkout
from resolver.git.git import Credential, HostGit, failure
from resolver.git.push import push_ref, taken
from resolver.git.remote import check_url

_KEPT = "\n\t\u2060"
"""Characters that are kept in a commit message although they are not printable.

U+2060 (word joiner) is inserted into `@name`, so that the message doesn't mention anybody.
"""


@dataclass(frozen=True)
class Identity:
    """The name and email address of a person or bot in a commit."""

    name: str
    email: str

    def __str__(self) -> str:
        return f"{self.clean_name} <{self.clean_email}>"

    @property
    def clean_name(self) -> str:
        """The name without characters that git doesn't allow in a name; never empty."""
        return _one_line(self.name) or "unknown"

    @property
    def clean_email(self) -> str:
        """The address without characters that git doesn't allow in an address; never empty."""
        return _one_line(self.email).replace(" ", "") or "unknown@localhost"


def _one_line(text: str) -> str:
    return "".join(c for c in text if c.isprintable() and c not in "<>").strip(" .,:;\"'\\")


def write_commit(
    git: HostGit,
    base: str,
    tree: str,
    message: str,
    author: Identity,
    at: datetime,
    co_authors: Sequence[Identity],
    merged: str = "",
) -> str:
    """Commit `tree` on top of `base` and return the id. The same arguments give the same id.

    merged: a second parent, which makes it a merge commit.
    """
    clean = "".join(c for c in message if c in _KEPT or c.isprintable()).strip()
    trailers = "\n".join(dict.fromkeys(f"Co-authored-by: {person}" for person in co_authors))
    text = f"{clean or 'Change'}\n" + (f"\n{trailers}\n" if trailers else "")
    date = f"@{int(at.timestamp())} +0000"
    made = git.run(
        "commit-tree", "--no-gpg-sign", "-p", base, *(("-p", merged) if merged else ()), "-F", "-",
        tree,
        stdin=text.encode("utf-8", "replace"),
        environment={
            "GIT_AUTHOR_NAME": author.clean_name,
            "GIT_AUTHOR_EMAIL": author.clean_email,
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_NAME": author.clean_name,
            "GIT_COMMITTER_EMAIL": author.clean_email,
            "GIT_COMMITTER_DATE": date,
        },
    )  # fmt: skip
    return made.decode().strip()


def push_branch(
    git: HostGit,
    commit: str,
    branch: str,
    url: str,
    credential: Credential | None,
    retries: RetryPolicy = NO_RETRIES,
) -> None:
    """Create `branch` at `url` with exactly `commit`. Does nothing if the branch holds it already.

    Raises BranchTaken if the branch holds another commit, PushRefused if the server rejects the
    push, and WorkspaceError if it fails otherwise.
    """
    _require_prefix(branch)
    push_ref(git, commit, branch, url, credential, "", retries)


def write_branch(git: HostGit, base: str, path: Path, branch: str, commit: str) -> None:
    """Create `branch` with `commit` in a user's repository at `path`.

    It adds objects and one ref and runs no hook. Raises BranchTaken if the branch holds another
    commit.
    """
    theirs = HostGit(checkout=path.absolute())
    ref = _our_branch(git, branch)
    check_commit(commit)
    if _is_there(theirs, ref, commit, branch, path):
        return
    # index-pack adds the objects without running a hook or writing FETCH_HEAD, as a push or fetch
    # would. The user's repository has the base, so only the objects that are new are packed.
    pack = git.run(
        "pack-objects", "--revs", "--stdout", "--delta-base-offset", "--quiet",
        stdin=f"{commit}\n^{base}\n".encode(),
    )  # fmt: skip
    theirs.run("index-pack", "--stdin", "--strict", stdin=pack)
    args = ("update-ref", "--no-deref", "-m", "branch: made by Resolver", ref, commit)
    done = theirs.attempt(*args, "0" * len(commit))
    if done.status != 0 and not _is_there(theirs, ref, commit, branch, path):
        raise failure(args, done, f"writing {branch} into {path}")


def _is_there(theirs: HostGit, ref: str, commit: str, branch: str, path: Path) -> bool:
    """Return True if the branch exists with `commit`. Raises BranchTaken if it has another one."""
    found = theirs.attempt("rev-parse", "--verify", "--quiet", ref)
    if found.status == 0 and found.stdout.decode().strip() != commit:
        raise taken(branch, str(path))
    return found.status == 0


def list_branches(where: str | Path, credential: Credential | None) -> frozenset[str]:
    """Return the branches that start with `agent/`, at a URL or in a local repository."""
    if isinstance(where, Path):
        pattern = f"refs/heads/{PREFIX}"
        out = open_checkout(where).text("for-each-ref", "--format=%(refname)", pattern)
        names = out.splitlines()
    else:
        args = ("ls-remote", "--heads", "--", check_url(where), f"refs/heads/{PREFIX}*")
        listed = HostGit().attempt(*args, credential=credential)
        if listed.status != 0:
            raise failure(args, listed, f"reading the branches of {where}")
        lines = listed.stdout.decode("utf-8", "surrogateescape").splitlines()
        names = [line.partition("\t")[2] for line in lines]
    full = f"refs/heads/{PREFIX}"
    return frozenset(n.removeprefix("refs/heads/") for n in names if n.startswith(full))


def _our_branch(git: HostGit, branch: str) -> str:
    """Return the full ref name. Raises WorkspaceError unless the branch starts with `agent/`."""
    _require_prefix(branch)
    return check_branch(git, branch)


def _require_prefix(branch: str) -> None:
    if not branch.startswith(PREFIX):
        raise WorkspaceError(
            f"{branch!r} is not a branch of ours", f"a branch that is written starts with {PREFIX}"
        )
