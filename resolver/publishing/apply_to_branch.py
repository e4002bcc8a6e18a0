"""A change put on top of what a branch holds by now: of a run alone, and of one that goes on from
what an earlier one has made public.
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
    """The commit that has the change. unchanged: it is somebody else's, who has made the same one;
    or nothing had changed."""

    commit: str
    how: Literal["pushed", "unchanged"]


def apply_to_branch(
    making: CommitBuilder,
    change: PlannedChange,
    branch: str,
    tip_of: Callable[[], str],
    push: Callable[[str, str], str],
) -> AppliedChange | None:
    """Put the change at the end of a branch; None where git alone can't, and the branch is left
    as it is.

    branch: its name, for a person. tip_of: what it holds now. push: moves it to a commit from the
    tip that is given second, and says which commit it then holds, "" when it was moved meanwhile.
    Raises as these do, PolicyViolation for what comes of the two together, and ForgeError when
    others are always faster.
    """
    if change.tree == making.workspace.tree(change.parent):
        return AppliedChange(change.parent, "unchanged")
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
    """What the work has changed since an earlier run of it, on top of what that one has made
    public. None where git alone can't tell the two apart.

    What is public may hold what others have pushed, on which the earlier change was put: that is no
    part of the work's own tree, and stays.
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
    found = replay_commits(git, before, patch.tree, commit)
    return None if found.conflicts else PlannedChange(commit, found.tree)


def _tree_of(git: HostGit, start: str, earlier: Publication) -> str | None:
    """The tree that the earlier run has made itself, in the clone; None where it is not to be had.

    Where its change was put on top of something else, that tree was never pushed: it is made again
    of the work's own commits since `start`, and is taken only when it is the very one.
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
