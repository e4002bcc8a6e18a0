"""Puts commits of a run on branches: on a new branch, or at the tip of an existing one.

A branch may have moved since the run started: a change is then applied to its new tip. That serves
runs that stand alone, and runs that continue what an earlier one has published.

Commits that are to be signed are created through GitHub's API instead of git. GitHub signs the
commits of an app's token that are made through its API:
https://docs.github.com/en/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resolver.config.retries import RetryPolicy
from resolver.config.templates import render
from resolver.errors import BranchTaken, ForgeError, PushRefused, ResolverError
from resolver.events.run_log import BRANCH_STAGE
from resolver.git.clone import check_commit
from resolver.git.git import HostGit
from resolver.git.merge import replay_commits
from resolver.git.objects import read_new_blobs, read_new_commits
from resolver.git.push import branch_name, fast_forward_branch, free_branch
from resolver.models.known_failures import push_failure
from resolver.models.repository import LocalCommit
from resolver.models.run import Publication, TriggerKind
from resolver.publishing.commit_builder import CommitBuilder, PlannedChange


def push_signed_commits(
    making: CommitBuilder, commit: str, branch: str, previous: str
) -> str | None:
    """Set `branch` of the task's repository to a signed copy of the commit; return the copy's id.

    previous: the commit that the branch holds now, "" for a new branch. Returns None if signed
    commits are not enabled, or the account can't sign. Raises the errors of a push, and ForgeError
    for errors that a push can't have.
    """
    signer = making.forge.signer() if making.request.settings.signed_commits else None
    if signer is None:
        return None
    git = making.workspace.git
    commits = read_new_commits(git, commit)
    if not commits:
        return None  # the server has all commits already

    def read(each: LocalCommit) -> Iterator[tuple[str, bytes]]:
        return read_new_blobs(git, each)

    try:
        placed = signer.put(commits, read, branch, previous)
    except ForgeError as error:
        raise _as_of_a_push(error) from error
    if not placed.signed:
        told = render("run/not_signed.md.j2").strip()
        if told not in making.request.notices:
            making.request.notices.append(told)
    return placed.id


def _as_of_a_push(error: ForgeError) -> ResolverError:
    """Return a PushRefused if GitHub's rules would refuse a push for the same reason."""
    known = push_failure(error.what)
    if known is None:
        return error
    of_branch = known.cause == "branch_protected"
    why = "the branch is protected" if of_branch else "a rule of the repository forbids it"
    refused = PushRefused(error.what, known.next_step, why, of_branch=of_branch)
    refused.cause = known.cause
    return refused


ATTEMPTS = 5
"""Maximum number of attempts if others write to the branch at the same time."""


def create_branch(making: CommitBuilder, commit: str) -> tuple[str, str]:
    """Publish the commit under a free branch name; return that name and the published commit's id.

    The id differs from `commit` if GitHub has made a signed commit instead. The name is logged
    before the push, so that a later attempt finds the branch of one that was killed.
    """
    request, forge = making.request, making.forge
    task = request.task
    number, kind = task.trigger.subject, "pull" if task.pull else "issue"
    wanted = branch_name(task.title, number, kind=kind)
    intended = request.log.intended_branch(request.run) if request.log else None
    if intended and (placed := _create(making, commit, intended)):
        return intended, placed
    taken = forge.branches(wanted)
    # Branches of interrupted attempts that never got a pull request are deleted to free the name.
    if taken:
        forge.discard_abandoned(wanted, request.run)
        earlier = request.continuation
        if earlier is not None and earlier.publishes:
            # It has the same change; the earlier run did not get as far as a pull request.
            forge.discard_abandoned(wanted, earlier.run)
        taken = forge.branches(wanted)
    for _ in range(ATTEMPTS):
        branch = free_branch(taken, wanted)
        if request.log:
            request.log.stage(BRANCH_STAGE, branch, 0.0)
        if placed := _create(making, commit, branch):
            return branch, placed
        taken = {*taken, branch}
    raise ForgeError(f"no free branch name like {wanted} was found", "delete old agent/ branches")


def _create(making: CommitBuilder, commit: str, branch: str) -> str:
    """Create `branch` with the commit and return its commit, "" if the name is taken.

    The branch's commit differs from `commit` if it is a signed copy.
    """
    request, workspace, source = making.request, making.workspace, making.request.task.source
    try:
        if request.trigger.kind is TriggerKind.LOCAL:
            workspace.write_branch(Path(source), branch, commit)
        elif signed := push_signed_commits(making, commit, branch, ""):
            return signed
        else:
            retries = RetryPolicy(request.settings.retry_seconds.github_writes)
            workspace.push(commit, branch, source, request.credential(), retries)
    except BranchTaken:
        return ""
    return commit


def advance_branch(making: CommitBuilder, commit: str, branch: str, url: str, previous: str) -> str:
    """Move `branch` at `url` from `previous` to its descendant `commit`.

    Returns the commit that the branch then holds, which may be a signed copy, or "" if it holds
    something else by now. Raises PushRefused if the server rejects the push.
    """
    credential = making.request.credential()
    try:
        # In a fork, only the owner can create commits through the API.
        own = url == making.request.task.source
        if own and (signed := push_signed_commits(making, commit, branch, previous)):
            return signed
        retries = RetryPolicy(making.request.settings.retry_seconds.github_writes)
        fast_forward_branch(
            making.workspace.git, commit, branch, url, credential, previous, retries
        )
    except BranchTaken:
        return ""
    return commit


@dataclass(frozen=True)
class AppliedChange:
    """The commit of the branch that contains the change.

    how: "unchanged" if there was nothing to push, because somebody else has made the same change or
    nothing has changed. Then it is not a commit of this run.
    """

    commit: str
    how: Literal["pushed", "unchanged"]


def apply_to_branch(
    making: CommitBuilder,
    change: PlannedChange,
    branch: str,
    tip_of: Callable[[], str],
    push: Callable[[str, str], str],
) -> AppliedChange | None:
    """Apply the change to the tip of a branch; return None if git can't do so without a conflict.

    In that case, the branch is left unchanged.

    branch: name of the branch, for messages.
    tip_of: returns the commit that the branch holds now.
    push: moves the branch to the commit in the first argument if it holds the one in the second. It
        returns the commit that the branch then holds, or "" if the branch was moved in between.

    Raises the errors of these two functions, PolicyViolation if the policy rejects the change on
    top of the new tip, and ForgeError if the branch is moved during each of ATTEMPTS attempts.
    """
    if change.tree == making.workspace.tree(change.parent):
        return AppliedChange(change.parent, "unchanged")
    # Optimistic concurrency: read the tip, build a commit on top of it, and push that on condition
    # that the branch still has this tip. A branch that was pushed to in between starts the next
    # round. A commit that an interrupted attempt of this run has pushed is found by `own_since`.
    for _ in range(ATTEMPTS):
        tip = tip_of()
        if own := making.own_since(change.parent, tip):
            return AppliedChange(own, "pushed")
        made = making.onto(change, tip)
        if made is None:
            return None
        if made == tip:
            return AppliedChange(tip, "unchanged")
        if placed := push(made, tip):
            return AppliedChange(placed, "pushed")
    raise ForgeError(
        f"{branch} received new pushes again and again",
        "try again when there is less activity on the branch",
    )


def change_since(making: CommitBuilder, earlier: Publication) -> PlannedChange | None:
    """Return what the work has changed since an earlier run of it, on top of that run's commit.

    The published commit may contain changes by others, if the earlier change was applied on top of
    them. They are not in this run's tree, so a plain comparison of the two trees would revert them.
    Returns None if the part of this run can't be separated without a conflict.
    """
    commit, patch = earlier.commit, making.request.patch
    assert commit is not None
    git, workspace = making.workspace.git, making.workspace
    start = workspace.pull.head if workspace.pull else workspace.base
    before = _tree_of(git, start, earlier)
    if before is None:
        return None
    if before == workspace.tree(commit):
        return PlannedChange(commit, patch.tree)
    # Three-way merge: the difference between the two runs' own trees, applied to the commit.
    found = replay_commits(git, before, patch.tree, commit)
    return None if found.conflicts else PlannedChange(commit, found.tree)


def _tree_of(git: HostGit, start: str, earlier: Publication) -> str | None:
    """Return the tree that the earlier run made itself, None if it can't be restored.

    If the earlier change was applied on top of a moved branch, that tree was never pushed. Then it
    is rebuilt by applying the commits of the work (those with a `Resolver-Run` trailer) to `start`,
    and is only used if its id is the recorded one.
    """
    if not earlier.tree or earlier.commit is None:
        return None
    known = git.attempt("cat-file", "-e", f"{check_commit(earlier.tree)}^{{tree}}")
    if known.status == 0:
        return earlier.tree
    given = f"{check_commit(start)}..{check_commit(earlier.commit)}"
    args = ("log", "--first-parent", "--reverse", "--format=%P %T", "--grep=^Resolver-Run: ", given)
    made = git.text("rev-parse", f"{start}^{{tree}}")
    for line in git.text(*args).splitlines():
        parents, tree = line.split()[:-1], line.split()[-1]
        found = replay_commits(git, parents[0], tree, made)
        if found.conflicts:
            return None
        made = found.tree
    return made if made == earlier.tree else None
