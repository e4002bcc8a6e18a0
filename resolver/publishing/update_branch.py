"""Brings a pull request up to date with its base branch.

If git can merge without a conflict, no model is called. Otherwise the agent gets git's merge with
its conflict markers, and the resolution of each conflict is judged.

GitHub's own API for a clean update is not used (PUT /repos/OWNER/REPO/pulls/NUMBER/update-branch).
It answers 202 before the merge exists and never names the commit. The merge takes whatever the base
branch is by then, and its message has no `Resolver-Run` trailer, so that a resumed run could not
tell its own merge from one of somebody else. Forks and conflicts need the way below in any case,
and it signs the merge too if `signed_commits` is set.
https://docs.github.com/en/rest/pulls/pulls#update-a-pull-request-branch
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from resolver.config.templates import render
from resolver.errors import ForgeError, PolicyViolation, Refused
from resolver.git.clone import check_branch
from resolver.git.git import HostGit
from resolver.git.merge import (
    MergeResult,
    commit_unfinished_merge,
    find_conflict_resolutions,
    find_paths_as_theirs,
    find_unresolved_paths,
    is_ancestor,
    merge,
)
from resolver.git.tree import quote, read_changes
from resolver.git.workspace import Workspace
from resolver.models.pull_request import PullRequestContext
from resolver.models.run import (
    Command,
    Outcome,
    Patch,
    RunState,
    Task,
)
from resolver.publishing.branches import BranchUnavailable
from resolver.publishing.commit_builder import CommitBuilder, PushedChange
from resolver.publishing.push_to_pull_request import (
    advance_pull_request,
    explain_not_updatable,
    find_parent,
    get_pull_request,
    publish_to_pull_request,
    refresh_pull_request,
    separate_branch,
)
from resolver.publishing.review_comments import readable_pull_request
from resolver.security.invisible_text import with_invisible_shown


@dataclass(frozen=True)
class BranchUpdate:
    """The way in which a pull request is brought up to date.

    kind: "up_to_date" if there is nothing to do, "clean_merge" if git merges without a conflict,
        "agent" if the agent has to work: on conflicts, or on any other request.
    workspace: the workspace to work in, which contains the conflicts if there are any.
    task: the task, which names the conflicts if there are any.
    """

    kind: Literal["agent", "up_to_date", "clean_merge"]
    workspace: Workspace
    task: Task


def plan_update(task: Task, workspace: Workspace) -> BranchUpdate:
    """Return how the pull request is brought up to date. Any other request needs the agent.

    Raises WorkspaceError if the branch has a name that can't be pushed to.
    """
    pull, git = workspace.pull, workspace.git
    if pull is None:
        return BranchUpdate("agent", workspace, task)
    if not pull.is_fork:
        check_branch(git, pull.head_branch)  # fail before the work, not when it is pushed
    if task.trigger.command is not Command.UPDATE:
        return BranchUpdate("agent", workspace, task)
    if not pull.conflicts and is_ancestor(git, pull.base, pull.head):
        return BranchUpdate("up_to_date", workspace, task)
    merged = merge(git, pull.head, pull.base)
    if merged.conflicts:
        return _with_conflicts(task, workspace, pull, merged)
    return BranchUpdate("clean_merge", workspace, task)


def update_outcome(kind: str, pull: PullRequestContext) -> Outcome:
    """Return the outcome of an update without an agent."""
    template = "up_to_date" if kind == "up_to_date" else "updated"
    message = render(f"run/{template}.md.j2", pull=pull).strip()
    return Outcome(state=RunState.FINISHED, reason=message, message=message, task_completed=True)


def unchanged_patch(workspace: Workspace) -> Patch:
    """Return the patch of a run that has changed nothing itself."""
    return Patch(base=workspace.base, tree=workspace.tree(workspace.base))


def require_publishable_update(builder: CommitBuilder) -> None:
    """Raise Refused if it is known before the merge that it could not be published."""
    pull = get_pull_request(builder)
    try:
        refresh_pull_request(builder)
    except BranchUnavailable as unavailable:
        if pull.is_fork:
            raise Refused(*explain_not_updatable(pull, unavailable)) from unavailable


def _with_conflicts(
    task: Task, workspace: Workspace, pull: PullRequestContext, merged: MergeResult
) -> BranchUpdate:
    """Return the workspace at git's merge with its conflict markers.

    Its base is a commit with both sides as parents, so that the agent can look at both histories.
    """
    pull = pull.model_copy(
        update={
            "conflicts": tuple(with_invisible_shown(quote(p)) for p in merged.conflicts),
            "conflict_notes": tuple(with_invisible_shown(note) for note in merged.notes),
        }
    )
    commit = commit_unfinished_merge(workspace.git, merged, pull.head, pull.base)
    return BranchUpdate(
        "agent",
        replace(workspace, base=commit, pull=pull),
        task.model_copy(update={"pull": readable_pull_request(pull)}),
    )


def publish_clean_merge(builder: CommitBuilder) -> PushedChange:
    """Publish git's merge of the base into the current tip of the branch."""
    pull = get_pull_request(builder)
    build = partial(_commit_clean_merge, builder)
    try:
        return advance_pull_request(refresh_pull_request(builder), pull.head, build, "updated")
    except BranchUnavailable as unavailable:
        return separate_branch(builder, build(pull.head), unavailable, is_merge=True)


def _commit_clean_merge(builder: CommitBuilder, tip: str) -> str:
    """Return a merge of the base into `tip`; `tip` if somebody else has merged the base.

    Raises ForgeError if there are conflicts.
    """
    pull, git = get_pull_request(builder), builder.workspace.git
    if is_ancestor(git, pull.base, tip):
        return tip
    merged = merge(git, tip, pull.base)
    if merged.conflicts:
        raise ForgeError(
            f"{pull.head_branch} received pushes during the run, and now conflicts with "
            f"{pull.base_branch}",
            "ask for the update again; it then starts from the newest commits",
        )
    return builder.commit(merged.tree, tip, pull.base)


def resolved_paths(
    outcome: Outcome, patch: Patch, git: HostGit, pull: PullRequestContext
) -> Collection[bytes]:
    """Return the paths whose conflict was resolved by taking the base's file as it is.

    The agent has written nothing at these paths. Raises PolicyViolation if a conflict is left, or
    the agent says that one is.

    pull: the pull request that the run updates, whose merge has conflicts.
    """
    merged = merge(git, pull.head, pull.base)
    unresolved = find_unresolved_paths(git, merged, patch.tree, pull.head, pull.base)
    what = None
    if unresolved:
        what = f"unresolved conflicts are left in {', '.join(quote(p) for p in unresolved[:10])}"
    elif not outcome.task_completed:
        what = "the agent says that not all conflicts are resolved, so the merge was not published"
    if what:
        step = "resolve them manually, or comment how they should be resolved"
        raise PolicyViolation(what, step)
    return find_paths_as_theirs(git, merged, patch.tree, pull.base)


def publish_merge(builder: CommitBuilder) -> PushedChange:
    """Publish the resolved merge, and how each conflict was resolved."""
    pull, git = get_pull_request(builder), builder.workspace.git
    tree = builder.request.patch.tree
    merged = merge(git, pull.head, pull.base)
    conflicts = find_conflict_resolutions(git, merged, tree, pull.head, pull.base)
    pushed = _publish_merge(builder)
    publication = pushed.publication.model_copy(update={"conflicts": conflicts})
    notices = (*_describe_extra_changes(builder, pull), *pushed.notices)
    return replace(pushed, publication=publication, notices=notices)


def _publish_merge(builder: CommitBuilder) -> PushedChange:
    """Push the merge to the branch if the branch still has the head that was merged."""
    pull = get_pull_request(builder)
    merge_commit = builder.commit(builder.request.patch.tree, pull.head, pull.base)

    def build(tip: str) -> str | None:
        # The conflicts were resolved for one pair of commits. On another tip the resolution might
        # not apply, so unlike other changes, it is not applied to a branch that has moved.
        return merge_commit if tip == pull.head else None

    try:
        builder = refresh_pull_request(builder)
        if find_parent(builder) != pull.head:
            # An earlier run of this work has pushed the merge.
            return publish_to_pull_request(builder)
        return advance_pull_request(builder, pull.head, build, "updated")
    except BranchUnavailable as unavailable:
        return separate_branch(builder, merge_commit, unavailable, is_merge=True)


def _describe_extra_changes(builder: CommitBuilder, pull: PullRequestContext) -> tuple[str, ...]:
    """Return a notice if the agent changed files in which there was no conflict."""
    patch = builder.request.patch
    changes = read_changes(builder.workspace.git, patch.base, patch.tree)
    changed = (with_invisible_shown(quote(change.path)) for change in changes)
    paths = [path for path in changed if path not in pull.conflicts]
    return (render("run/merge_touches.md.j2", paths=paths).strip(),) if paths else ()
