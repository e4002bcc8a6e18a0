"""Pushes commits to branches, never by force over commits of others.

A push names the commit that the branch is expected to hold, and fails if it holds another one. The
server's refusals are turned into errors with an explanation and a next step.
"""

import logging
import re

from resolver.config.retries import NO_RETRIES, RetryPolicy
from resolver.errors import BranchTaken, PushRefused, ResolverError, WorkspaceError
from resolver.git.clone import BASE_REF, STARTS_AT_REF, check_branch, check_commit
from resolver.git.git import Credential, GitResult, HostGit, failure
from resolver.git.history import LEVELS, Remote, Tip, fetch_successor
from resolver.git.merge import is_ancestor
from resolver.git.remote import check_url, list_refs
from resolver.models.known_failures import OUTAGES

TIP_REF = "refs/resolver/tip"
"""The ref of the clone to which the newest commit of a branch is fetched."""

_TROUBLE = re.compile(
    r"returned error: (?:429|5\d\d)|HTTP (?:429|5\d\d)|RPC failed; curl|hung up unexpectedly"
    r"|early EOF|unexpected disconnect|[Ee]mpty reply|[Cc]ould not resolve host"
    r"|[Ff]ailed to connect|[Cc]ouldn't connect|[Cc]onnection (?:reset|refused|timed out|was)"
    r"|[Oo]peration timed out|did not end within|SSL_"
)
"""What git reports if a server fails or can't be reached."""

logger = logging.getLogger("resolver.git")

_REFUSALS = (
    (r"refusing to allow .* (?:create or update|update or create) workflow|without `?workflows?`?",
     "it holds a change to a workflow file, which this token may not make",
     "give the token the permission `workflows: write` (the scope `workflow` of a classic token; "
     "the job's own GITHUB_TOKEN never has it), or make that change by hand"),
    (r"GH006|GH013|[Pp]rotected branch|[Rr]epository rule violations",
     "the branch is protected",
     "let the account that pushes pass the branch's rules, or take the change over by hand"),
    (r"archived",
     "the repository is archived",
     "unarchive it first"),
    (r"returned error: 403|[Pp]ermission to .* denied|[Ww]rite access to repository not granted",
     "the token may not push there",
     "give the token the permission `contents: write` for that repository"),
)  # fmt: skip


def fetch_tip(git: HostGit, url: str, branch: str, credential: Credential | None) -> str | None:
    """Fetch the newest commit of a branch and return its id, or None if there is no such branch.

    Raises WorkspaceError if the repository can't be read.
    """
    ref = check_branch(git, branch)
    listing = list_refs(check_url(url), [ref], credential)
    if ref not in listing.refs:
        return None
    moved = git.attempt("rev-parse", "--verify", "--quiet", STARTS_AT_REF).status == 0
    remote = Remote(url, credential, listing.filters)
    tip = Tip(TIP_REF, listing.refs[ref], ref, 2 * LEVELS)
    fetch_successor(git, remote, tip, STARTS_AT_REF if moved else BASE_REF)
    return git.text("rev-parse", f"{TIP_REF}^{{commit}}")


def push_onto(
    git: HostGit,
    commit: str,
    branch: str,
    url: str,
    credential: Credential | None,
    previous: str,
    retries: RetryPolicy = NO_RETRIES,
) -> None:
    """Move `branch` from `previous`, which it is expected to hold, to its descendant `commit`.

    Repeating it has no effect. Raises BranchTaken if the branch holds another commit by now,
    PushRefused if the server rejects the push, and WorkspaceError if it fails otherwise or `commit`
    is no descendant.
    """
    if not is_ancestor(git, previous, commit):
        raise WorkspaceError(
            f"{commit[:12]} does not build on {previous[:12]}, so it was not pushed to {branch}"
        )
    push_ref(git, commit, branch, url, credential, previous, retries)


def push_ref(
    git: HostGit,
    commit: str,
    branch: str,
    url: str,
    credential: Credential | None,
    previous: str,
    retries: RetryPolicy = NO_RETRIES,
) -> None:
    """Set `branch` to `commit` if it holds `previous`, or if it doesn't exist and `previous` is "".

    Repeating it has no effect. retries: for a server that fails or can't be reached. Raises the
    same errors as `push_onto`.
    """
    ref = check_branch(git, branch)
    check_commit(commit)
    check_url(url)

    def attempt() -> None:
        _push_once(git, commit, ref, url, credential, previous)

    retries.call(attempt, _wait_after_push, _log_wait)


def _wait_after_push(error: ResolverError) -> float | None:
    """Return 0.0 if the push may be tried again, None if the server has rejected it."""
    if isinstance(error, PushRefused | BranchTaken):
        return None
    in_trouble = error.cause in OUTAGES or (not error.cause and _TROUBLE.search(error.what))
    return 0.0 if in_trouble else None


def _log_wait(error: ResolverError, wait: float) -> None:
    logger.warning("%s; trying again in %.0f seconds", error.what, wait)


def _push_once(
    git: HostGit,
    commit: str,
    ref: str,
    url: str,
    credential: Credential | None,
    previous: str,
) -> None:
    branch = ref.removeprefix("refs/heads/")
    # Despite its name, --force-with-lease makes the push safer here: the server updates the ref
    # only if it still has the expected value ("" means that it must not exist), so a concurrent
    # push of somebody else is never overwritten. `push_onto` has checked that the new commit is a
    # descendant of the old one. https://git-scm.com/docs/git-push
    args = (
        "push", "--porcelain", "--no-verify", f"--force-with-lease={ref}:{previous}", "--",
        url, f"{commit}:{ref}",
    )  # fmt: skip
    done = git.attempt(*args, credential=credential)
    if done.status == 0:
        return
    # The push may have succeeded although the answer was lost, or failed because an earlier attempt
    # had succeeded. The commit that the branch holds now decides.
    listed = git.attempt("ls-remote", "--", url, ref, credential=credential)
    lines = listed.stdout.decode("utf-8", "replace").splitlines()
    there = [line.partition("\t")[0] for line in lines if line.endswith(f"\t{ref}")]
    if there == [commit]:
        return
    if there and there != [previous]:
        raise taken(branch, url)
    raise _refused(args, done, f"pushing {branch} to {url}", credential)


def require_push(
    git: HostGit, commit: str, branch: str, url: str, credential: Credential | None
) -> None:
    """Raise PushRefused if the server doesn't let this account write `branch`.

    `git push --dry-run` asks the server and sends no objects. commit: a commit that the server may
    have already. Other errors are ignored here; the real push will raise them.
    """
    ref = check_branch(git, branch)
    args = (
        "push", "--dry-run", "--porcelain", "--no-verify", "--",
        check_url(url), f"{check_commit(commit)}:{ref}",
    )  # fmt: skip
    done = git.attempt(*args, credential=credential)
    if done.status == 0:
        return
    error = _refused(args, done, f"asking whether {branch} at {url} can be pushed to", credential)
    if isinstance(error, PushRefused):
        raise error


def _refused(
    args: tuple[str, ...], done: GitResult, doing: str, credential: Credential | None
) -> WorkspaceError:
    """Return the error of a failed push: PushRefused for a known reason, else WorkspaceError."""
    lines = [
        line.split("\t")[-1]
        for line in done.stdout.decode("utf-8", "replace").splitlines()
        if line.startswith("!")
    ]
    said = "\n".join([done.stderr, *lines])
    words = credential.redact(said) if credential else said
    error = failure(args, GitResult(done.status, b"", words), doing)
    for pattern, why, next_step in _REFUSALS:
        if re.search(pattern, words):
            of_branch = why == "the branch is protected"
            refused = PushRefused(f"{error.what} ({why})", next_step, why, of_branch=of_branch)
            refused.cause = error.cause
            return refused
    return error


def taken(branch: str, where: str) -> BranchTaken:
    """Return the error for a branch that holds another commit."""
    return BranchTaken(
        f"the branch {branch} exists in {where} with something else on it",
        "delete it there, or let another name be chosen",
    )
