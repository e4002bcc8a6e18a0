"""Finds the checks of a project in the files of its base commit.

The files are read as git objects and nothing is executed. A command that gives results by test is
preferred to one that wraps it, so that the same tests are not run by two routes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from resolver.config.allowed_hosts import AllowList
from resolver.models.verification import OmittedCheck, ProjectCheck
from resolver.verification.check_candidates import CheckChooser, enter_folder
from resolver.verification.instrumentation import runner_of
from resolver.verification.javascript_checks import find_javascript_checks, script_runner
from resolver.verification.language_checks import find_language_checks
from resolver.verification.make_checks import find_make_checks, target_runner
from resolver.verification.project_tree import ProjectTree
from resolver.verification.python_checks import find_python_checks
from resolver.verification.runner_commands import simple_commands


@dataclass(frozen=True)
class DiscoveredChecks:
    """The checks of a project, and those that can't be executed here, with the reasons."""

    checks: tuple[ProjectCheck, ...] = ()
    omitted: tuple[OmittedCheck, ...] = ()


def discover_checks(tree: ProjectTree, allowed: AllowList | None = None) -> DiscoveredChecks:
    """Return the checks that the files of a tree show, always in the same order.

    The commands of workflows are not among them: a runner of GitHub gives them secrets, services
    and tools that a sandbox lacks, and a script that is taken apart no longer means what it says.

    allowed: the hosts that the sandbox may reach, None for no host.
    """
    allowed = allowed or AllowList.parse(())
    chooser = CheckChooser()
    chooser.add(find_python_checks(tree, allowed))
    chooser.add(find_language_checks(tree))
    chooser.add(find_javascript_checks(tree))
    chooser.add(find_make_checks(tree))
    return DiscoveredChecks(tuple(chooser.checks), chooser.omitted())


def complete_declared_checks(
    checks: Sequence[ProjectCheck], tree: ProjectTree
) -> tuple[ProjectCheck, ...]:
    """Return the checks of the setting `checks` with the runners that they start.

    `npm test` and `make test` are looked up in the files of the tree.
    """
    return tuple(
        check
        if check.runner
        else check.model_copy(update={"runner": _declared_runner(check.command, tree)})
        for check in checks
    )


def _declared_runner(command: str, tree: ProjectTree) -> str:
    if runner := runner_of(command):
        return runner
    folder, found = "", ""
    for simple in simple_commands(command):
        if simple.changes_folder:
            folder = enter_folder(folder, simple.words[1])
        elif simple.script or simple.target:
            if found or simple.runner:
                return ""
            script = script_runner(tree, folder, simple.script) if simple.script else ""
            found = script or target_runner(tree, folder, simple.target)
    return found
