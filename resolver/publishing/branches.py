"""Puts commits of a run on branches: on a new branch, or at the tip of an existing one."""

from pathlib import Path

from resolver.config.retries import RetryPolicy
from resolver.errors import BranchTaken, ForgeError
from resolver.events.run_log import BRANCH_STAGE
from resolver.git.branch_names import branch_name, free_branch
from resolver.git.push import push_onto
from resolver.models.run import TriggerKind
from resolver.publishing.commit_builder import CommitBuilder
from resolver.publishing.signed_commits import push_signed_commits

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
    wanted = branch_name(task.title, number, of=kind)
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
        push_onto(making.workspace.git, commit, branch, url, credential, previous, retries)
    except BranchTaken:
        return ""
    return commit
