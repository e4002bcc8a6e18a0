"""Selects the checks that are executed for a change: the declared ones, or those that are found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from resolver.config.allowed_hosts import AllowList
from resolver.git.policy import matches_glob
from resolver.git.workspace import Workspace
from resolver.models.verification import OmittedCheck, ProjectCheck
from resolver.verification.discovery import discover_checks
from resolver.verification.project_tree import ProjectTree


@dataclass(frozen=True)
class CheckSelection:
    """The checks that are relevant for a change, and how they are narrowed.

    affected: returns the check for only the tests that the change affects; None if it can't be
        narrowed.
    only: returns the check for only the tests with these ids; None if it can't be narrowed.
    """

    checks: tuple[ProjectCheck, ...]
    omitted: tuple[OmittedCheck, ...] = ()
    affected: Callable[[ProjectCheck], ProjectCheck | None] = lambda _: None
    only: Callable[[ProjectCheck, Sequence[str]], ProjectCheck | None] = lambda _, __: None


def select_checks(
    declared: Sequence[ProjectCheck],
    workspace: Workspace,
    allowed: AllowList,
    changed_files: Sequence[str],
) -> CheckSelection:
    """Return the checks to execute for a change.

    They are found in the base commit, never in the change, which could otherwise choose by what it
    is judged.

    declared: the checks of the settings; if there are any, no others are looked for.
    allowed: the hosts that the sandbox may reach.
    changed_files: paths of the files that the change adds, modifies or deletes.
    """
    if declared:
        relevant = tuple(check for check in declared if _is_relevant(check, changed_files))
        return CheckSelection(relevant)
    found = discover_checks(ProjectTree.from_commit(workspace.git, workspace.base), allowed)
    relevant = tuple(check for check in found.checks if _is_relevant(check, changed_files))
    return CheckSelection(relevant, found.omitted)


def _is_relevant(check: ProjectCheck, changed_files: Sequence[str]) -> bool:
    return not check.paths or any(matches_glob(path, check.paths) for path in changed_files)
