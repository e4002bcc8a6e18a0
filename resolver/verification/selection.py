"""Selects the checks that are executed for a change: the declared ones, or those that are found."""

from collections.abc import Sequence
from dataclasses import dataclass

from resolver.git.workspace import Workspace
from resolver.models.path_globs import matches_glob
from resolver.models.test_files import is_test_file
from resolver.models.verification import OmittedCheck, ProjectCheck
from resolver.runtime.service_policy import NO_SERVICES, ServicePolicy, allow_services
from resolver.verification.checks import complete_check, discover_checks
from resolver.verification.project_tree import ProjectTree


@dataclass(frozen=True)
class CheckSelection:
    """The checks that are relevant for a change, and the test files that the change touches.

    touched: those that a runner collects with the change. touched_at_base: those that a runner
        collects at the base commit.
    """

    checks: tuple[ProjectCheck, ...]
    omitted: tuple[OmittedCheck, ...] = ()
    touched: tuple[str, ...] = ()
    touched_at_base: tuple[str, ...] = ()


def select_checks(
    declared: Sequence[ProjectCheck],
    workspace: Workspace,
    changed_files: Sequence[str],
    head: str,
    services: ServicePolicy = NO_SERVICES,
) -> CheckSelection:
    """Return the checks to execute for a change.

    They are found in the base commit, never in the change, which could otherwise choose by what it
    is judged.

    declared: the checks of the settings; if there are any, no others are looked for.
    changed_files: paths of the files that the change adds, modifies or deletes.
    head: tree of the change. It decides only which of a check's tests are executed first.
    services: those that may run alongside the sandbox.
    """
    before = ProjectTree.from_commit(workspace.git, workspace.base)
    found, omitted = find_checks(declared, before, services)
    checks = relevant_checks(found, changed_files)
    if not declared and not checks:
        checks = found  # a change of what several packages share may break each of them
    after = ProjectTree.from_commit(workspace.git, head)
    touched, touched_at_base = (touched_tests(tree, changed_files) for tree in (after, before))
    return CheckSelection(checks, omitted, touched, touched_at_base)


def find_checks(
    declared: Sequence[ProjectCheck], tree: ProjectTree, services: ServicePolicy = NO_SERVICES
) -> tuple[tuple[ProjectCheck, ...], tuple[OmittedCheck, ...]]:
    """Return the checks of a project, and those whose services may not run."""
    if not declared:
        return discover_checks(tree), ()
    return allow_services([complete_check(check, tree) for check in declared], services)


def touched_tests(tree: ProjectTree, changed_files: Sequence[str]) -> tuple[str, ...]:
    """Return the test files of the tree that the change touches."""
    return tuple(sorted(filter(_is_collected, set(tree.paths) & set(changed_files))))


def _is_collected(path: str) -> bool:
    """Return True if a runner would collect the file: helpers in the folder of tests are none."""
    name = path.rpartition("/")[2].lower()
    return is_test_file(path) and name != "conftest.py" and ("test" in name or "spec" in name)


def relevant_checks(
    checks: Sequence[ProjectCheck], changed_files: Sequence[str]
) -> tuple[ProjectCheck, ...]:
    """Return the checks without `paths`, and those with a glob that matches a changed file."""
    return tuple(
        check
        for check in checks
        if not check.paths
        or any(matches_glob(path, glob) for path in changed_files for glob in check.paths)
    )
