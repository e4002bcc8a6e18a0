"""Applies a change to a branch that may have moved since the run started.

It serves runs that stand alone, and runs that continue what an earlier one has published.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from resolver.errors import ForgeError
from resolver.git.clone import check_commit
from resolver.git.git import HostGit
from resolver.git.merge import replay_commits
from resolver.models.run import Publication
from resolver.publishing.branches import ATTEMPTS
from resolver.publishing.commit_builder import CommitBuilder, PlannedChange


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
    raise ForgeError(f"{branch} was pushed to again and again", "try again when it is quiet there")


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
