"""Decides whether a fix of the past can be a task: its tests must tell the fix from its absence.

No model is used. The tests of the fix are executed on the commit before it and on the fix itself,
each three times in a fresh sandbox with the project's environment, and the three must be alike.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from resolver.errors import SandboxError
from resolver.evaluation.task_format import ExpectedTests
from resolver.models.verification import CheckExecution, ProjectCheck
from resolver.verification.comparison import case_statuses
from resolver.verification.runner import TreeName

REPETITIONS = 3
"""Number of executions of one tree that must be alike."""

UnusableReason = Literal[
    "",
    "no_tests",
    "tests_only",
    "no_parent",
    "no_text",
    "not_fetched",
    "no_checks",
    "environment",
    "passes_without_fix",
    "fails_with_fix",
    "flaky",
    "unreliable_report",
    "time_limit",
    "sandbox_error",
]
"""Why a fix can't be a task; "" if it can.

no_tests: it changes no test file. tests_only: it changes nothing else. no_parent: the commit before
it is missing. no_text: nothing describes the problem. not_fetched: the commit is in no branch.
no_checks: no test command was found. environment: the fix alters the environment, and none that
fits could be prepared.
"""

ExecuteCheck = Callable[[TreeName, ProjectCheck], CheckExecution]
"""Executes a check at a tree, in a fresh sandbox. Raises SandboxError."""


@dataclass(frozen=True)
class Qualification:
    """The result for one fix.

    check, expected: how its hidden tests are executed, and which they are, if the reason is "".
    detail: the end of an output or a message, for a person.
    """

    reason: UnusableReason = ""
    detail: str = ""
    check: ProjectCheck | None = None
    expected: ExpectedTests | None = None


def passed_tests(execution: CheckExecution, check: ProjectCheck) -> frozenset[str]:
    """Return the tests that passed. A check without a report counts as one test, by its name."""
    if execution.cases:
        return frozenset(n for n, status in case_statuses(execution).items() if status == "passed")
    is_success = execution.exit_code == 0 and not check.report_format
    return frozenset({check.name} if is_success else ())


def qualify(execute: ExecuteCheck, checks: Sequence[ProjectCheck]) -> Qualification:
    """Return the result for a fix: that of the first check that tells it from the commit before.

    checks: the project's checks, the preferred one first. The trees are "base",
    "base_with_tests", which has the hidden tests in addition, and "head", the fix.
    """
    found = Qualification("no_checks")
    for check in checks:
        try:
            result = _qualify_check(execute, check)
        except SandboxError as error:
            result = Qualification("sandbox_error", error.what)
        if not result.reason:
            return result
        found = found if found.reason not in {"no_checks"} else result
    return found


def _qualify_check(execute: ExecuteCheck, check: ProjectCheck) -> Qualification:
    after = execute("head", check)
    if reason := _doubt(after):
        return Qualification(reason, after.output)
    if after.exit_code != 0:
        return Qualification("fails_with_fix", after.output)
    before = execute("base_with_tests", check)
    if before.exit_code is None:
        return Qualification("time_limit", before.output)
    fixed = passed_tests(after, check) - passed_tests(before, check)
    if before.exit_code == 0 or not fixed:
        return Qualification("passes_without_fix")
    trees: dict[TreeName, CheckExecution] = {"head": after, "base_with_tests": before}
    for _ in range(1, REPETITIONS):
        for tree, first in trees.items():
            if _signature(execute(tree, check)) != _signature(first):
                return Qualification("flaky")
    base = execute("base", check)
    kept = (passed_tests(base, check) & passed_tests(after, check)) - fixed
    expected = ExpectedTests(fail_to_pass=tuple(sorted(fixed)), pass_to_pass=tuple(sorted(kept)))
    return Qualification(check=check, expected=expected)


def _doubt(execution: CheckExecution) -> UnusableReason:
    if execution.exit_code is None:
        return "time_limit"
    return "" if execution.report_complete else "unreliable_report"


def _signature(execution: CheckExecution) -> object:
    return execution.exit_code, case_statuses(execution)
