"""Puts commits of a run on branches: on a new branch, or at the tip of an existing one.

A branch may have moved since the run started: the change is then applied to its new tip. Both new
runs and runs that continue the work of an earlier one use this module.

Commits that are to be signed are created through GitHub's API instead of git. GitHub signs the
commits of an app's token that are made through its API:
https://docs.github.com/en/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from resolver.config.templates import render
from resolver.errors import BranchTaken, ForgeError, PushRefused, ResolverError, WorkspaceError
from resolver.events.run_log import BRANCH_STAGE
from resolver.git.objects import read_local_commit
from resolver.git.push import (
    branch_name,
    fetch_tip,
    free_branch,
    list_branches,
    push_commit,
    push_refusal,
    write_branch,
)
from resolver.git.tree import read_blobs
from resolver.models.known_failures import push_failure
from resolver.models.run import Publication
from resolver.publishing.commit_builder import CommitBuilder, PushedCommit


def push_signed_commits(
    builder: CommitBuilder, commit: str, branch: str, previous: str | None
) -> PushedCommit | None:
    """Set `branch` of the task's repository to a signed copy of the commit; return the copy.

    previous: the commit that the branch holds now, None for a new branch. Returns None if signed
    commits are not enabled, or the account can't sign. Raises PushRefused and BranchTaken as a push
    does, and ForgeError for other errors.
    """
    signer = builder.forge.signer() if builder.request.settings.signed_commits else None
    if signer is None:
        return None
    git = builder.workspace.git
    new_commit = read_local_commit(git, commit)
    try:
        published = signer.put(new_commit, read_blobs(git, new_commit.blobs), branch, previous)
    except ForgeError as error:
        raise _as_push_refusal(error) from error
    notices = () if published.signed else (render("run/not_signed.md.j2").strip(),)
    return PushedCommit(published.id, notices)


def _as_push_refusal(error: ForgeError) -> ResolverError:
    """Return the error as a PushRefused if GitHub would refuse a push for the same reason."""
    known = push_failure(error.what)
    if known is None:
        return error
    return push_refusal(WorkspaceError(error.what, known.next_step, known.cause)) or error


MAX_ATTEMPTS = 5
"""Maximum number of attempts if others write to the branch at the same time."""

UnavailableReason = Literal[
    "moved",
    "rewritten",
    "gone",
    "closed",
    "protected",
    "base",
    "fork_gone",
    "fork_locked",
    "fork_unreadable",
    "job_token",
    "rejected",
]
"""Why a change can't be pushed to a branch; `run/unavailable.j2` has the sentences."""


@dataclass(eq=False)
class BranchUnavailable(Exception):
    """Raised if the change can't be pushed to an existing branch.

    branch: its name.
    detail: what the server said about it, None for nothing.
    next_step: what a person can do so that it can be pushed, None if there is nothing.
    """

    reason: UnavailableReason
    branch: str
    detail: str | None = None
    next_step: str | None = None

    @property
    def why(self) -> str:
        """The reason for people, as the end of a sentence that starts with "because"."""
        values = {"reason": self.reason, "branch": self.branch, "detail": self.detail}
        return render("run/unavailable.j2", **values).strip()

    @property
    def branch_exists(self) -> bool:
        """Whether a pull request can be opened against the branch."""
        return self.reason not in {"gone", "closed", "fork_gone"}


def create_branch(builder: CommitBuilder, commit: str) -> tuple[str, PushedCommit]:
    """Publish the commit under a free branch name; return that name and the published commit.

    Its id differs from `commit` if GitHub has made a signed commit instead. The name is logged
    before the push, so that a later attempt finds the branch of one that was killed.
    """
    request = builder.request
    task, url = request.task, request.task.source
    number, kind = task.trigger.subject, "pull" if task.pull else "issue"
    preferred = branch_name(task.title, number, kind=kind)
    intended_branch = request.log.intended_branch(request.run) if request.log else None
    branch = intended_branch or preferred
    for _ in range(MAX_ATTEMPTS):
        if request.log and branch != intended_branch:
            request.log.stage(BRANCH_STAGE, branch, 0.0)
        # A name is not looked up before: a push that finds the branch is refused.
        if pushed := push_to_branch(builder, commit, branch, url):
            return branch, replace(pushed, is_new_branch=branch != intended_branch)
        forge = builder.optional_forge
        names = forge.branches(preferred) if forge else list_branches(Path(task.source))
        branch = free_branch({*names, branch}, preferred)
    raise ForgeError(
        f"no free branch name like {preferred} was found", "delete old agent/ branches"
    )


def push_to_branch(
    builder: CommitBuilder, commit: str, branch: str, url: str, previous: str | None = None
) -> PushedCommit | None:
    """Move `branch` at `url` from `previous` to its descendant `commit`, or create the branch.

    previous: the commit that the branch is expected to hold, None if it doesn't exist yet. Returns
    the commit that the branch then holds, which may be a signed copy, or None if it holds something
    else by now. Raises PushRefused if the server rejects the push.
    """
    request, workspace = builder.request, builder.workspace
    request.before_push()
    # In a fork, only the owner can create commits through the API.
    is_own_repository = url == request.task.source
    try:
        if builder.optional_forge is None:
            write_branch(workspace.git, workspace.base, Path(url), branch, commit)
        elif is_own_repository and (
            signed_commit := push_signed_commits(builder, commit, branch, previous)
        ):
            return signed_commit
        else:
            retries = request.settings.pace.retries
            credential = request.credential()
            push_commit(workspace.git, commit, branch, url, credential, previous, retries)
    except BranchTaken:
        return None
    return PushedCommit(commit)


def fetch_branch(builder: CommitBuilder, branch: str, url: str) -> str:
    """Fetch the commit that an existing branch holds now, and return its id.

    url: of its repository, which may be a fork. Raises BranchUnavailable if the branch is gone, or
    the fork can't be read.
    """
    request = builder.request
    try:
        tip = fetch_tip(builder.workspace.git, url, branch, request.credential())
    except WorkspaceError as error:
        if url == request.task.source:
            raise
        raise BranchUnavailable("fork_unreadable", branch, error.what) from error
    if tip is None:
        raise BranchUnavailable("gone", branch)
    return tip


def advance_branch(
    builder: CommitBuilder,
    start: str,
    branch: str,
    url: str,
    build: Callable[[str], str | None],
) -> PushedCommit:
    """Build a commit on the tip of an existing branch at `url` and push it.

    If there is nothing to push, because somebody else has made the same change or nothing has
    changed, the result is the tip, with `is_unchanged`.

    start: a commit of the branch. If there is a commit of this run after it, an interrupted attempt
        has pushed that, and it is the result.
    build: returns the commit to push for the tip in its argument; the tip itself if there is
        nothing to push; None if no commit can be built on it.

    Raises BranchUnavailable if the branch is gone, nothing can be built on it, or it refuses the
    push; then it is left unchanged. Raises PushRefused if the server refuses all pushes, and
    ForgeError if the branch is moved during each of MAX_ATTEMPTS attempts.
    """
    # Optimistic concurrency: read the tip, build a commit on top of it, and push that on condition
    # that the branch still has this tip. A branch that was pushed to in between starts the next
    # round.
    for _ in range(MAX_ATTEMPTS):
        tip = fetch_branch(builder, branch, url)
        if own_commit := builder.find_own_commit(start, tip):
            return PushedCommit(own_commit)
        new_commit = build(tip)
        if new_commit is None:
            raise BranchUnavailable("moved", branch)
        if new_commit == tip:
            return PushedCommit(tip, is_unchanged=True)
        try:
            pushed = push_to_branch(builder, new_commit, branch, url, tip)
        except PushRefused as refused:
            if url == builder.request.task.source and not refused.branch_only:
                raise
            raise BranchUnavailable("rejected", branch, refused.why, refused.next_step) from refused
        if pushed:
            return pushed
    raise ForgeError(
        f"{branch} received new pushes again and again",
        "try again when there is less activity on the branch",
    )


def require_own_tree(builder: CommitBuilder, earlier: Publication, branch: str) -> str:
    """Return the commit that an earlier run of the same work published on the branch.

    Raises BranchUnavailable if it contains changes by others, because the earlier change was
    applied on top of them. They are not in this run's tree, so a plain comparison of the two trees
    would revert them.
    """
    assert earlier.commit is not None
    if earlier.tree != builder.workspace.tree(earlier.commit):
        raise BranchUnavailable("moved", branch)
    return earlier.commit
