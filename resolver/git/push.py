"""Writes Resolver's commit and pushes commits to branches, never by force over commits of others.

A push names the commit that the branch is expected to hold, and fails if it holds another one. The
server's refusals are turned into errors with an explanation and a next step. Nothing is checked
out. A new branch has a free name that is made from a title and starts with `agent/`.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from resolver.config.retries import NO_RETRIES, RetryPolicy
from resolver.errors import BranchTaken, Cause, PushRefused, ResolverError, WorkspaceError
from resolver.git.clone import BASE_REF, STARTS_AT_REF, check_branch, check_commit, open_checkout
from resolver.git.git import Credential, GitResult, HostGit, git_failure
from resolver.git.history import Remote, fetch_successor
from resolver.git.merge import is_ancestor
from resolver.git.remote import check_url, list_refs
from resolver.models.known_failures import OUTAGES, git_failure_reason

PREFIX = "agent/"
"""Prefix of every branch that Resolver creates."""

_MAX_SLUG_CHARACTERS = 50
"""Maximum length of a slug in characters."""


def slug(title: str) -> str:
    """Return 1 to 50 ASCII lower-case letters, digits and single hyphens made from `title`."""
    ascii_title = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    text = re.sub(r"[^a-z0-9]+", "-", ascii_title).strip("-")
    if len(text) > _MAX_SLUG_CHARACTERS:
        whole_words = text[: _MAX_SLUG_CHARACTERS + 1].rpartition("-")[0]
        text = (whole_words or text)[:_MAX_SLUG_CHARACTERS].strip("-")
    return text or "change"


def branch_name(title: str, number: int | None = None, *, kind: str = "issue") -> str:
    """Return the preferred branch name for work on a title, such as `agent/issue-12-<slug>`.

    Without a number, it is `agent/<slug>`. kind: what the number belongs to, `issue` or `pull`.
    """
    return f"{PREFIX}{kind}-{number}-{slug(title)}" if number is not None else PREFIX + slug(title)


def issue_branch_prefix(number: int) -> str:
    """Return the prefix of the branches that Resolver creates for work on an issue."""
    return f"{PREFIX}issue-{number}-"


def free_branch(existing: Collection[str], preferred: str) -> str:
    """Return `preferred`, or `preferred-2`, `preferred-3` and so on if that is in `existing`.

    Names are compared without case, because some file systems do so. A branch below `preferred/`
    also makes the name unavailable, because a ref can't be a file and a folder at once.
    """
    taken = [name.casefold() for name in existing]
    number, name = 1, preferred
    while any(t == name.casefold() or t.startswith(f"{name.casefold()}/") for t in taken):
        number += 1
        name = f"{preferred}-{number}"
    return name


TIP_REF = "refs/resolver/tip"
"""The ref of the clone to which the newest commit of a branch is fetched."""

_REFUSALS: Mapping[Cause | None, str] = {
    "workflow_files": "it contains a change to a workflow file, which this token may not make",
    "branch_protected": "the branch is protected",
    "push_rule": "a rule of the repository forbids it",
    "archived": "the repository is archived",
    "push_permission": "the token may not push there",
}
"""Causes for which the server would refuse the push again, worded as the end of a sentence."""

_REFUSED_BRANCHES = frozenset({"branch_protected", "push_rule"})
"""Those of them that may not hold for another branch."""


def fetch_tip(git: HostGit, url: str, branch: str, credential: Credential | None) -> str | None:
    """Fetch the newest commit of a branch and return its id, or None if there is no such branch.

    Raises WorkspaceError if the repository can't be read.
    """
    ref = check_branch(git, branch)
    listing = list_refs(check_url(url), [ref], credential)
    if ref not in listing.refs:
        return None
    was_moved = git.attempt("rev-parse", "--verify", "--quiet", STARTS_AT_REF).status == 0
    start, commit = STARTS_AT_REF if was_moved else BASE_REF, listing.refs[ref]
    fetch_successor(git, Remote(url, credential), TIP_REF, commit, start)
    return commit


def push_commit(
    git: HostGit,
    commit: str,
    branch: str,
    url: str,
    credential: Credential | None,
    previous: str | None = None,
    retries: RetryPolicy = NO_RETRIES,
) -> None:
    """Move `branch` at `url` from `previous` to its descendant `commit`, or create the branch.

    previous: the commit that the branch is expected to hold, None if it doesn't exist yet. Only
        branches that start with `agent/` are created.
    retries: for a server that fails or can't be reached.

    Repeating it has no effect. Raises BranchTaken if the branch holds another commit by now,
    PushRefused if the server rejects the push, and WorkspaceError if it fails otherwise or `commit`
    is not a descendant.
    """
    if previous is None:
        _require_prefix(branch)
    elif not is_ancestor(git, previous, commit):
        raise WorkspaceError(
            f"{commit[:12]} does not build on {previous[:12]}, so it was not pushed to {branch}"
        )
    ref = check_branch(git, branch)
    check_commit(commit)
    check_url(url)

    def attempt() -> None:
        _push_once(git, commit, ref, url, credential, previous)

    retries.call(attempt, _wait_after_push)


def _wait_after_push(error: ResolverError) -> float | None:
    """Return 0.0 if the push may be tried again, None if the server has rejected it."""
    if isinstance(error, PushRefused | BranchTaken):
        return None
    known = git_failure_reason(error.what)
    cause = error.cause or (known.cause if known else None)
    return 0.0 if cause in OUTAGES else None


def _push_once(
    git: HostGit,
    commit: str,
    ref: str,
    url: str,
    credential: Credential | None,
    previous: str | None,
) -> None:
    branch = ref.removeprefix("refs/heads/")
    # Despite its name, --force-with-lease makes the push safer here: the server updates the ref
    # only if it still has the expected value ("" means that it must not exist), so a concurrent
    # push of somebody else is never overwritten. `push_commit` has checked that the new
    # commit is a descendant of the old one. https://git-scm.com/docs/git-push
    args = (
        "push", "--porcelain", "--no-verify", f"--force-with-lease={ref}:{previous or ''}", "--",
        url, f"{commit}:{ref}",
    )  # fmt: skip
    result = git.attempt(*args, credential=credential)
    if result.status == 0:
        return
    # The push may have succeeded although the answer was lost, or failed because an earlier attempt
    # had succeeded. The commit that the branch holds now decides.
    listing = git.attempt("ls-remote", "--", url, ref, credential=credential)
    lines = listing.stdout.decode("utf-8", "replace").splitlines()
    remote_commits = [line.partition("\t")[0] for line in lines if line.endswith(f"\t{ref}")]
    if remote_commits == [commit]:
        return
    if remote_commits and remote_commits != [previous]:
        raise branch_taken_error(branch, url)
    raise _push_error(args, result, f"pushing {branch} to {url}", credential)


def _push_error(
    args: tuple[str, ...], result: GitResult, operation: str, credential: Credential | None
) -> WorkspaceError:
    """Return the error of a failed push: PushRefused for a known reason, else WorkspaceError."""
    lines = [
        line.split("\t")[-1]
        for line in result.stdout.decode("utf-8", "replace").splitlines()
        if line.startswith("!")
    ]
    output = "\n".join([result.stderr, *lines])
    clean_output = credential.redact(output) if credential else output
    error = git_failure(args, GitResult(result.status, b"", clean_output), operation)
    return push_refusal(error) or error


def push_refusal(error: WorkspaceError) -> PushRefused | None:
    """Return the error as a refusal of the push, None if the push may succeed later."""
    reason = _REFUSALS.get(error.cause)
    if reason is None:
        return None
    branch_only = error.cause in _REFUSED_BRANCHES
    refused = PushRefused(
        f"{error.what} ({reason})", error.next_step, reason, branch_only=branch_only
    )
    refused.cause = error.cause
    return refused


def branch_taken_error(branch: str, location: str) -> BranchTaken:
    """Return the error for a branch that holds another commit."""
    return BranchTaken(
        f"the branch {branch} already exists in {location} with other commits",
        "delete it there, or choose another name",
    )


_KEPT_CHARACTERS = "\n\t\u2060"
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
    committed_at: datetime,
    co_authors: Sequence[Identity],
    merged: str | None = None,
) -> str:
    """Commit `tree` on top of `base` and return the id. The same arguments give the same id.

    merged: a second parent, which makes it a merge commit.
    """
    clean_message = "".join(c for c in message if c in _KEPT_CHARACTERS or c.isprintable()).strip()
    trailers = "\n".join(dict.fromkeys(f"Co-authored-by: {person}" for person in co_authors))
    text = f"{clean_message or 'Change'}\n" + (f"\n{trailers}\n" if trailers else "")
    date = f"@{int(committed_at.timestamp())} +0000"
    output = git.run(
        "commit-tree", "--no-gpg-sign", "-p", check_commit(base),
        *(("-p", merged) if merged else ()), "-F", "-", tree,
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
    return output.decode().strip()


def write_branch(git: HostGit, base: str, path: Path, branch: str, commit: str) -> None:
    """Create `branch` (`agent/...`) with `commit` in a user's repository at `path`.

    It adds objects and one ref and runs no hook; working tree, index, HEAD and configuration are
    not touched. Repeating it has no effect. base: a commit that the repository has. Raises
    BranchTaken if the branch holds another commit, and WorkspaceError if writing it fails.
    """
    repository = HostGit(checkout=path.absolute())
    _require_prefix(branch)
    ref = check_branch(git, branch)
    check_commit(commit)
    if _branch_has_commit(repository, ref, commit, branch, path):
        return
    # index-pack adds the objects without running a hook or writing FETCH_HEAD, as a push or fetch
    # would. The user's repository has the base, so only the objects that are new are packed.
    pack = git.run(
        "pack-objects", "--revs", "--stdout", "--delta-base-offset", "--quiet",
        stdin=f"{commit}\n^{base}\n".encode(),
    )  # fmt: skip
    repository.run("index-pack", "--stdin", "--strict", stdin=pack)
    args = ("update-ref", "--no-deref", "-m", "branch: made by Resolver", ref, commit)
    result = repository.attempt(*args, "0" * len(commit))
    if result.status != 0 and not _branch_has_commit(repository, ref, commit, branch, path):
        raise git_failure(args, result, f"writing {branch} into {path}")


def _branch_has_commit(repository: HostGit, ref: str, commit: str, branch: str, path: Path) -> bool:
    """Return True if the branch exists with `commit`. Raises BranchTaken if it has another one."""
    result = repository.attempt("rev-parse", "--verify", "--quiet", ref)
    if result.status == 0 and result.stdout.decode().strip() != commit:
        raise branch_taken_error(branch, str(path))
    return result.status == 0


def list_branches(path: Path) -> frozenset[str]:
    """Return the branches of a local repository that start with `agent/`."""
    pattern = f"refs/heads/{PREFIX}"
    names = open_checkout(path).text("for-each-ref", "--format=%(refname)", pattern).splitlines()
    return frozenset(name.removeprefix("refs/heads/") for name in names)


def _require_prefix(branch: str) -> None:
    if not branch.startswith(PREFIX):
        raise WorkspaceError(
            f"{branch!r} is not a branch of Resolver",
            f"a branch that is written starts with {PREFIX}",
        )
