"""Selects the checks that are executed for a change: the declared ones, or those that are found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resolver.git.workspace import Workspace
from resolver.models.path_globs import matches_glob
from resolver.models.test_files import is_test_file
from resolver.models.verification import OmittedCheck, ProjectCheck
from resolver.runtime.service_policy import NO_SERVICES, ServicePolicy, allow_services
from resolver.verification.checks import complete_check, discover_checks
from resolver.verification.project_tree import ProjectTree
from resolver.verification.runners import narrow_to_files, narrow_to_tests


class NarrowedCheck(NamedTuple):
    """A check for a part of the tests. share: how large the part is, by the number of test files;
    1.0 for all of them."""

    check: ProjectCheck
    share: float


@dataclass(frozen=True)
class CheckSelection:
    """The checks that are relevant for a change, and how they are narrowed.

    affected: returns the check for only the test files that the change touches, as they are named
        with the change, or (True) at the base commit; None if it can't be narrowed.
    in_files: returns the check for only the tests in these files of the change; None if it can't be
        narrowed.
    only: returns the check for only the tests with these ids; None if it can't be narrowed.
    """

    checks: tuple[ProjectCheck, ...]
    omitted: tuple[OmittedCheck, ...] = ()
    affected: Callable[[ProjectCheck, bool], NarrowedCheck | None] = lambda _, __: None
    in_files: Callable[[ProjectCheck, Sequence[str]], ProjectCheck | None] = narrow_to_files
    only: Callable[[ProjectCheck, Sequence[str]], ProjectCheck | None] = narrow_to_tests


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

    def affected(check: ProjectCheck, at_base: bool) -> NarrowedCheck | None:
        return affected_check(check, changed_files, before if at_base else after)

    return CheckSelection(checks, omitted, affected)


def find_checks(
    declared: Sequence[ProjectCheck], tree: ProjectTree, services: ServicePolicy = NO_SERVICES
) -> tuple[tuple[ProjectCheck, ...], tuple[OmittedCheck, ...]]:
    """Return the checks of a project, and those whose services may not run."""
    if not declared:
        return discover_checks(tree), ()
    return allow_services([complete_check(check, tree) for check in declared], services)


def affected_check(
    check: ProjectCheck, changed_files: Sequence[str], tree: ProjectTree
) -> NarrowedCheck | None:
    """Return the check for the test files that the change touches, as far as the tree has them.

    None if the runner can't be narrowed to files, or if the change touches none that it collects.
    """
    tests = [path for path in tree.paths if _is_collected(path)]
    touched = sorted(set(tests) & set(changed_files))
    narrowed = narrow_to_files(check, touched)
    return None if narrowed is None else NarrowedCheck(narrowed, len(touched) / len(tests))


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
