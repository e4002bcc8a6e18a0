"""A pull request brought up to date with its base. Where git can do it alone no model is asked;
else the agent gets what git made of it, and what it did about the conflicts is judged by itself.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from resolver.config.templates import render
from resolver.errors import ForgeError, PolicyViolation, Refused
from resolver.git.clone import check_branch
from resolver.git.merge import (
    MergeResult,
    is_ancestor,
    merge,
    settled_conflicts,
    taken_over,
    unfinished,
    unresolved,
)
from resolver.git.tree import quote, read_patch
from resolver.git.workspace import Workspace
from resolver.github.text.invisible import with_invisible_shown
from resolver.models.pull_request import PullRequestContext
from resolver.models.run import (
    Command,
    Outcome,
    Patch,
    Publication,
    RunState,
    SettledConflict,
    Task,
)
from resolver.publishing.branches import ATTEMPTS
from resolver.publishing.commit_builder import CommitBuilder
from resolver.publishing.push_to_pull_request import (
    BranchUnavailable,
    change_of,
    publish_on_pull,
    published_change,
    pull_of,
    push_change,
    refresh_pull_request,
    require_way,
    separate_branch,
    tip_of,
    why_no_branch,
)
from resolver.publishing.request import PushedChange
from resolver.publishing.review import readable_pull_request

_AGAIN = "ask for it again: it begins with what is there then"


@dataclass(frozen=True)
class BranchUpdate:
    """How a request to bring a pull request up to date is done.

    kind: "up_to_date" when nothing is to be done, "clean_merge" when git merges by itself, "agent"
    when conflicts are left for the agent, in a workspace that holds them.
    """

    kind: Literal["agent", "up_to_date", "clean_merge"]
    workspace: Workspace
    task: Task


def plan_update(task: Task, workspace: Workspace) -> BranchUpdate:
    """Return how the pull request is brought up to date; any other work is the agent's.

    Raises WorkspaceError for a branch whose name nothing can be pushed to.
    """
    pull, git = workspace.pull, workspace.git
    if pull is None:
        return BranchUpdate("agent", workspace, task)
    if not pull.is_fork:
        check_branch(git, pull.head_branch)  # nothing could be pushed to it
    if task.trigger.command is not Command.UPDATE:
        return BranchUpdate("agent", workspace, task)
    if not pull.conflicts and is_ancestor(git, pull.base, pull.head):
        return BranchUpdate("up_to_date", workspace, task)
    merged = merge(git, pull.head, pull.base)
    if merged.conflicts:
        return _with_conflicts(task, workspace, pull, merged)
    return BranchUpdate("clean_merge", workspace, task)


def update_outcome(kind: str, pull: PullRequestContext) -> Outcome:
    """Return the outcome of an update that no agent worked on."""
    name = "up_to_date" if kind == "up_to_date" else "updated"
    message = render(f"run/{name}.md.j2", pull=pull).strip()
    return Outcome(state=RunState.FINISHED, reason=message, message=message, task_completed=True)


def unchanged_patch(workspace: Workspace) -> Patch:
    """Return the patch of a run that has changed nothing itself."""
    return Patch(base=workspace.base, tree=workspace.tree(workspace.base))


def require_update_way(making: CommitBuilder) -> None:
    """Raise Refused where the merge could not be published once it is made."""
    pull = pull_of(making)
    try:
        require_way(making)
    except BranchUnavailable as missed:
        if pull.is_fork and (why := why_no_branch(making, pull.head, missed)):
            raise Refused(
                f"#{pull.number} can't be brought up to date from here, because {why}",
                f"let its author merge {pull.base_branch} into it, or let maintainers edit it",
            ) from missed


def _with_conflicts(
    task: Task, workspace: Workspace, pull: PullRequestContext, merged: MergeResult
) -> BranchUpdate:
    """The workspace at git's own merge, markers included, with both histories behind it."""
    pull = pull.model_copy(
        update={
            "conflicts": tuple(with_invisible_shown(quote(p)) for p in merged.conflicts),
            "conflict_notes": tuple(with_invisible_shown(note) for note in merged.notes),
        }
    )
    commit = unfinished(workspace.git, merged, pull.head, pull.base)
    return BranchUpdate(
        "agent",
        replace(workspace, base=commit, pull=pull),
        task.model_copy(update={"pull": readable_pull_request(pull)}),
    )


def publish_clean_merge(making: CommitBuilder) -> PushedChange:
    """Publish the merge that git makes by itself, of what is on the branch now."""
    pull = pull_of(making)
    try:
        return PushedChange(_push_clean(refresh_pull_request(making)))
    except BranchUnavailable as missed:
        tree = merge(making.workspace.git, pull.head, pull.base).tree
        made = making.commit(tree, pull.head, pull.base)
        return separate_branch(making, made, missed, merges=True)


def _push_clean(making: CommitBuilder) -> Publication:
    pull, git = pull_of(making), making.workspace.git
    made = ""
    for _ in range(ATTEMPTS):
        tip = tip_of(making)
        if made and is_ancestor(git, made, tip):
            return published_change(making, made, "updated")
        if is_ancestor(git, pull.base, tip):
            return published_change(making, tip, "unchanged")  # somebody else has done it meanwhile
        merged = merge(git, tip, pull.base)
        if merged.conflicts:
            raise ForgeError(
                f"{pull.head_branch} was pushed to meanwhile, and what is there now is in conflict "
                f"with {pull.base_branch}",
                _AGAIN,
            )
        made = making.commit(merged.tree, tip, pull.base)
        if placed := push_change(making, made, tip):
            return published_change(making, placed, "updated")
    raise ForgeError(f"{pull.head_branch} was pushed to again and again", _AGAIN)


def resolved_paths(outcome: Outcome, patch: Patch, workspace: Workspace) -> Collection[bytes]:
    """Paths whose conflict was ended by taking the base's own file as it is: what they hold was
    never the agent's. Empty where the work is no merge.

    Raises PolicyViolation when a conflict is left.
    """
    pull = workspace.pull
    if pull is None or not pull.conflicts:
        return ()
    git = workspace.git
    merged = merge(git, pull.head, pull.base)
    left = unresolved(git, merged, patch.tree, pull.head, pull.base)
    if left:
        raise PolicyViolation(
            f"conflicts are left as git wrote them, in {', '.join(quote(p) for p in left[:10])}",
            "resolve them by hand, or say how they are to be resolved",
        )
    if not outcome.task_completed:
        raise PolicyViolation(
            "the agent says that not all conflicts are resolved, so the merge was not published",
            "resolve them by hand, or say how they are to be resolved",
        )
    return taken_over(git, merged, patch.tree, pull.base)


def publish_merge(making: CommitBuilder) -> PushedChange:
    """The resolved merge, on the very commit that it was made for, and how it was resolved."""
    pull, git = pull_of(making), making.workspace.git
    tree = making.request.patch.tree
    ended = settled_conflicts(git, merge(git, pull.head, pull.base), tree, pull.head, pull.base)
    conflicts = tuple(
        SettledConflict(
            path=with_invisible_shown(quote(each.path)), kept=each.kept, untouched=each.untouched
        )
        for each in ended
    )
    pushed = _publish_merge(making)
    publication = pushed.publication.model_copy(update={"conflicts": conflicts})
    return replace(pushed, publication=publication)


def _publish_merge(making: CommitBuilder) -> PushedChange:
    pull = pull_of(making)
    made = making.commit(making.request.patch.tree, pull.head, pull.base)
    making.request.notices.extend(_told_of(making, pull))
    try:
        making = refresh_pull_request(making)
        if change_of(making).parent != pull.head:
            return publish_on_pull(making)  # the merge itself is there already
        tip = tip_of(making)
        placed = made if is_ancestor(making.workspace.git, made, tip) else ""
        if not placed and tip == pull.head:
            placed = push_change(making, made, tip)
        if not placed:
            raise BranchUnavailable(f"somebody has pushed to {pull.head_branch} meanwhile")
    except BranchUnavailable as missed:
        return separate_branch(making, made, missed, merges=True)
    return PushedChange(published_change(making, placed, "updated"))


def _told_of(making: CommitBuilder, pull: PullRequestContext) -> list[str]:
    """What a reviewer of the merge should know: what it changes where there was no conflict."""
    patch = making.request.patch
    own = read_patch(making.workspace.git, patch.base, patch.tree, 0).files
    others = [file.path for file in own if file.path not in pull.conflicts]
    if not others:
        return []
    return [render("run/merge_touches.md.j2", paths=others).strip()]
