"""A pull request brought up to date with its base. Where git can do it alone no model is asked;
else the agent gets what git made of it, and what it did about the conflicts is judged by itself.
"""

import time
from collections.abc import Collection
from dataclasses import replace

from resolver.agents.registry import answers
from resolver.errors import ForgeError, PolicyViolation, Refused
from resolver.forge.base import Forge
from resolver.forge.invisible import with_invisible_shown
from resolver.model import (
    Command,
    Outcome,
    Patch,
    Publication,
    RunState,
    SettledConflict,
    Task,
)
from resolver.publishing.making import Making
from resolver.publishing.onto import (
    Missed,
    as_now,
    beside,
    change_of,
    publish_on_pull,
    published,
    pull_of,
    push,
    require_way,
    tip_of,
    why_no_branch,
)
from resolver.publishing.placing import ATTEMPTS
from resolver.publishing.review import legible
from resolver.pull import Pull
from resolver.record import Record
from resolver.templates import render
from resolver.workspace.clone import check_branch
from resolver.workspace.merging import (
    Merged,
    is_ancestor,
    merge,
    settled,
    taken_over,
    unfinished,
    unresolved,
)
from resolver.workspace.tree import quote, read_patch
from resolver.workspace.workspace import Workspace

_AGAIN = "ask for it again: it begins with what is there then"


def begin_on_pull(record: Record, forge: Forge, workspace: Workspace) -> Workspace | None:
    """The workspace to do the work in, None when there is nothing left to do. Raises Refused for a
    merge that could not be made public."""
    task, pull = record.task, workspace.pull
    if task is None or pull is None or answers(record.settings.agent, record.agents.agents):
        return workspace
    if not pull.is_fork:
        check_branch(workspace.git, pull.head_branch)  # nothing could be pushed to it
    if task.trigger.command is not Command.UPDATE:
        return workspace
    git = workspace.git
    if not pull.conflicts and is_ancestor(git, pull.base, pull.head):
        record.patch = _nothing(workspace)
        _end(record, render("run/up_to_date.md.j2", pull=pull).strip())
        record.exit_code = 3
        return None
    if record.job.publish:
        _require_way(Making(record, forge, task, workspace))
    merged = merge(git, pull.head, pull.base)
    if merged.conflicts:
        return _with_conflicts(record, task, workspace, merged)
    record.patch = _nothing(workspace)
    _end(record, render("run/updated.md.j2", pull=pull).strip())
    if record.job.publish:
        _publish_clean(Making(record, forge, task, workspace))
    return None


def _require_way(making: Making) -> None:
    """Raise Refused where the merge could not be made public when it is there."""
    pull = pull_of(making)
    try:
        require_way(making)
    except Missed as missed:
        if pull.is_fork and (why := why_no_branch(making, pull.head, missed)):
            raise Refused(
                f"#{pull.number} can't be brought up to date from here, because {why}",
                f"let its author merge {pull.base_branch} into it, or let maintainers edit it",
            ) from missed


def _nothing(workspace: Workspace) -> Patch:
    """That we have changed nothing ourselves."""
    return Patch(base=workspace.base, tree=workspace.tree(workspace.base))


def _end(record: Record, message: str) -> None:
    record.outcome = Outcome(
        state=RunState.FINISHED, reason=message, message=message, task_completed=True
    )


def _with_conflicts(record: Record, task: Task, workspace: Workspace, merged: Merged) -> Workspace:
    """The workspace at git's own merge, markers included, with both histories behind it."""
    assert workspace.pull is not None
    pull = workspace.pull.model_copy(
        update={
            "conflicts": tuple(with_invisible_shown(quote(p)) for p in merged.conflicts),
            "conflict_notes": tuple(with_invisible_shown(note) for note in merged.notes),
        }
    )
    commit = unfinished(workspace.git, merged, pull.head, pull.base)
    record.base = commit
    record.task = task.model_copy(update={"pull": legible(pull)})
    return replace(workspace, base=commit, pull=pull)


def _publish_clean(making: Making) -> None:
    """The merge that git makes by itself, of what is there now."""
    record, pull = making.record, pull_of(making)
    started = time.monotonic()
    try:
        record.publication = _push_clean(as_now(making))
    except Missed as missed:
        tree = merge(making.workspace.git, pull.head, pull.base).tree
        made = making.commit(tree, pull.head, pull.base)
        record.publication = beside(making, made, missed, merges=True)
    if record.publication.how == "unchanged":
        _end(record, render("run/up_to_date.md.j2", pull=pull).strip())
        record.exit_code = 3
        return
    if record.log:
        record.log.stage("published", pull.head_branch, time.monotonic() - started)


def _push_clean(making: Making) -> Publication:
    pull, git = pull_of(making), making.workspace.git
    made = ""
    for _ in range(ATTEMPTS):
        tip = tip_of(making)
        if made and is_ancestor(git, made, tip):
            return published(making, made, "updated")
        if is_ancestor(git, pull.base, tip):
            return published(making, tip, "unchanged")  # somebody else has done it meanwhile
        merged = merge(git, tip, pull.base)
        if merged.conflicts:
            raise ForgeError(
                f"{pull.head_branch} was pushed to meanwhile, and what is there now is in conflict "
                f"with {pull.base_branch}",
                _AGAIN,
            )
        made = making.commit(merged.tree, tip, pull.base)
        if placed := push(making, made, tip):
            return published(making, placed, "updated")
    raise ForgeError(f"{pull.head_branch} was pushed to again and again", _AGAIN)


def settled_paths(record: Record, workspace: Workspace) -> Collection[bytes]:
    """Paths whose conflict was ended by taking the base's own file as it is: what they hold was
    never the agent's. Empty where the work is no merge.

    Raises PolicyViolation when a conflict is left.
    """
    task, pull, patch = record.task, workspace.pull, record.patch
    if task is None or pull is None or patch is None or not pull.conflicts:
        return ()
    git = workspace.git
    merged = merge(git, pull.head, pull.base)
    left = unresolved(git, merged, patch.tree, pull.head, pull.base)
    if left:
        raise PolicyViolation(
            f"conflicts are left as git wrote them, in {', '.join(quote(p) for p in left[:10])}",
            "resolve them by hand, or say how they are to be resolved",
        )
    if not (record.outcome and record.outcome.task_completed):
        raise PolicyViolation(
            "the agent says that not all conflicts are resolved, so the merge was not published",
            "resolve them by hand, or say how they are to be resolved",
        )
    return taken_over(git, merged, patch.tree, pull.base)


def publish_merge(making: Making) -> Publication:
    """The resolved merge, on the very commit that it was made for, and how it was resolved."""
    pull, git = pull_of(making), making.workspace.git
    assert making.record.patch is not None
    tree = making.record.patch.tree
    ended = settled(git, merge(git, pull.head, pull.base), tree, pull.head, pull.base)
    conflicts = tuple(
        SettledConflict(
            path=with_invisible_shown(quote(each.path)), kept=each.kept, untouched=each.untouched
        )
        for each in ended
    )
    making.record.publication = Publication(conflicts=conflicts)
    return _publish_merge(making).model_copy(update={"conflicts": conflicts})


def _publish_merge(making: Making) -> Publication:
    pull, patch = pull_of(making), making.record.patch
    assert patch is not None
    made = making.commit(patch.tree, pull.head, pull.base)
    making.record.warnings.extend(_told_of(making, pull))
    try:
        making = as_now(making)
        if change_of(making).parent != pull.head:
            return publish_on_pull(making)  # the merge itself is there already
        tip = tip_of(making)
        placed = made if is_ancestor(making.workspace.git, made, tip) else ""
        if not placed and tip == pull.head:
            placed = push(making, made, tip)
        if not placed:
            raise Missed(f"somebody has pushed to {pull.head_branch} meanwhile")
    except Missed as missed:
        return beside(making, made, missed, merges=True)
    return published(making, placed, "updated")


def _told_of(making: Making, pull: Pull) -> list[str]:
    """What a reviewer of the merge should know: what it changes where there was no conflict."""
    patch = making.record.patch
    assert patch is not None
    own = read_patch(making.workspace.git, patch.base, patch.tree, 0).files
    others = [file.path for file in own if file.path not in pull.conflicts]
    if not others:
        return []
    return [render("run/merge_touches.md.j2", paths=others).strip()]
