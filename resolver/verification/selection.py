"""Selects the checks that are executed for a change: the declared ones, or those that are found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from resolver.config.allowed_hosts import AllowList
from resolver.git.workspace import Workspace
from resolver.models.verification import OmittedCheck, ProjectCheck
from resolver.verification.affected_tests import (
    NarrowedCheck,
    affected_check,
    check_of_files,
    name_unittest_tests,
)
from resolver.verification.check_candidates import Omission
from resolver.verification.discovery import (
    DiscoveredChecks,
    complete_declared_checks,
    discover_checks,
)
from resolver.verification.instrumentation import append_arguments, runner_of
from resolver.verification.project_tree import ProjectTree
from resolver.verification.relevant_checks import relevant_checks
from resolver.verification.runner_commands import split_pytest_paths
from resolver.verification.services import (
    NO_SERVICES,
    ServicePolicy,
    available_of,
    read_compose_services,
    unavailable_of,
)

MAX_IDS = 100
"""Maximum number of tests that are named in a command."""


@dataclass(frozen=True)
class CheckSelection:
    """The checks that are relevant for a change, and how they are narrowed.

    affected: returns the check for only the tests that the change affects, as they are named with
        the change, or (True) at the base commit; None if it can't be narrowed.
    in_files: returns the check for only the tests in these files of the change; None if it can't be
        narrowed.
    only: returns the check for only the tests with these ids; None if it can't be narrowed.
    """

    checks: tuple[ProjectCheck, ...]
    omitted: tuple[OmittedCheck, ...] = ()
    affected: Callable[[ProjectCheck, bool], NarrowedCheck | None] = lambda _, __: None
    in_files: Callable[[ProjectCheck, Sequence[str]], ProjectCheck | None] = lambda _, __: None
    only: Callable[[ProjectCheck, Sequence[str]], ProjectCheck | None] = lambda _, __: None


def select_checks(
    declared: Sequence[ProjectCheck],
    workspace: Workspace,
    allowed: AllowList,
    changed_files: Sequence[str],
    head: str,
    services: ServicePolicy = NO_SERVICES,
) -> CheckSelection:
    """Return the checks to execute for a change.

    They are found in the base commit, never in the change, which could otherwise choose by what it
    is judged.

    declared: the checks of the settings; if there are any, no others are looked for.
    allowed: the hosts that the sandbox may reach.
    changed_files: paths of the files that the change adds, modifies or deletes.
    head: tree of the change. It decides only which of a check's tests are executed first.
    services: those that may run alongside the sandbox.
    """
    before = ProjectTree.from_commit(workspace.git, workspace.base)
    found = (
        _with_services(complete_declared_checks(declared, before), before, services)
        if declared
        else discover_checks(before, allowed)
    )
    named = (with_runner(check) for check in relevant_checks(found.checks, changed_files))
    after = ProjectTree.from_commit(workspace.git, head)

    def affected(check: ProjectCheck, at_base: bool) -> NarrowedCheck | None:
        return affected_check(check, changed_files, before if at_base else after)

    def in_files(check: ProjectCheck, files: Sequence[str]) -> ProjectCheck | None:
        return check_of_files(check, files, after)

    return CheckSelection(tuple(named), found.omitted, affected, in_files, only_tests)


def _with_services(
    declared: Sequence[ProjectCheck], tree: ProjectTree, policy: ServicePolicy
) -> DiscoveredChecks:
    """Return the declared checks with the services that they name, and those that lack one."""
    checks: list[ProjectCheck] = []
    omitted: list[OmittedCheck] = []
    for check in declared:
        services = read_compose_services(tree, check.service_names, policy)
        lacking = tuple(service.describe() for service in unavailable_of(services))
        if lacking:
            subject = f"The check `{check.name}`"
            omission = Omission(check.name, check.command, "services", subject, lacking)
            omitted.append(omission.describe())
        else:
            checks.append(check.model_copy(update={"services": available_of(services)}))
    return DiscoveredChecks(tuple(checks), tuple(omitted))


def with_runner(check: ProjectCheck) -> ProjectCheck:
    """Return the check with the runner that its command starts, if that is known."""
    return check.model_copy(update={"runner": check.runner or runner_of(check.command)})


def only_tests(check: ProjectCheck, ids: Sequence[str]) -> ProjectCheck | None:
    """Return the check for the tests with these ids; None if its runner takes no ids.

    pytest takes the ids of its reports: https://docs.pytest.org/en/stable/how-to/usage.html
    unittest takes dotted names: https://docs.python.org/3/library/unittest.html#command-line-interface
    """
    if check.runner == "unittest":
        named = name_unittest_tests(check, ids)
        return None if named is None else check.model_copy(update={"command": named})
    if check.runner != "pytest" or not 0 < len(ids) <= MAX_IDS:
        return None
    if not all("::" in test_id and not test_id.startswith("-") for test_id in ids):
        return None
    split = split_pytest_paths(check.command)
    if split is None:
        return None
    # The tests that the command names itself would be executed too.
    command = append_arguments(check.model_copy(update={"command": split[0]}), *ids)
    return None if command is None else check.model_copy(update={"command": command})
