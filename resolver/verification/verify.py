"""Verifies a change: executes the project's checks at base and at the change, and compares them.

The tests that the change affects are executed first, then the whole checks within the time that is
given. A test that fails now and did not before is repeated at both commits before it counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from resolver.models.verification import (
    CheckComparison,
    CheckExecution,
    OmittedCheck,
    ProjectCheck,
    Scope,
)
from resolver.verification.comparison import (
    WHOLE_CHECK,
    compare_executions,
    needs_rerun,
    reproductions_to_confirm,
)
from resolver.verification.runner import CheckRunner, TreeName, WantedExecution

REPETITIONS = 3
"""Number of times that a newly failing test is repeated at both commits."""


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


@dataclass(frozen=True)
class ExecutedChecks:
    """The comparisons of the checks that were executed, in their order.

    timed_out: names of the checks that there was not enough time for.
    """

    comparisons: tuple[CheckComparison, ...]
    timed_out: tuple[str, ...] = ()


def execute_checks(
    selection: CheckSelection,
    runner: CheckRunner,
    *,
    has_tests: bool,
    deleted_files: Sequence[str] = (),
) -> ExecutedChecks:
    """Execute the checks and compare them.

    has_tests: True if the change adds or changes test files. They are then executed on the base
        commit too.
    deleted_files: test files that the change deletes.
    Raises SandboxError.
    """
    comparisons: list[CheckComparison] = []
    timed_out: list[str] = []
    for check in selection.checks:
        one = _CheckVerification(check, selection, runner, has_tests)
        one.execute_affected()
        one.execute_whole()
        one.repeat_failures()
        if (compared := one.compare(deleted_files)) is not None:
            comparisons.append(compared)
        if compared is None or one.is_cut:
            timed_out.append(check.name)
        if runner.is_cancelled:
            break
    return ExecutedChecks(tuple(comparisons), tuple(timed_out))


class _CheckVerification:
    """The executions of one check, at all trees."""

    def __init__(
        self, check: ProjectCheck, selection: CheckSelection, runner: CheckRunner, has_tests: bool
    ) -> None:
        self._check = check
        self._selection = selection
        self._runner = runner
        self._has_tests = has_tests
        self._affected = selection.affected(check)
        self._scope: Scope = "full"
        self._results: dict[TreeName, list[CheckExecution]] = {
            "base": [], "base_with_tests": [], "head": [],
        }  # fmt: skip
        self.is_cut = False

    def execute_affected(self) -> None:
        """Execute the affected tests at the change, and with the change's tests at base.

        A check that can't be narrowed is executed as a whole at the latter.
        """
        wanted: list[WantedExecution] = []
        if self._affected is not None:
            wanted.append(WantedExecution("head", self._affected))
        if self._has_tests:
            wanted.append(WantedExecution("base_with_tests", self._affected or self._check))
        self._add(wanted, self._runner.execute(wanted))

    def execute_whole(self) -> None:
        """Execute the whole check at base and at the change, as far as the time suffices."""
        wanted = [WantedExecution("base", self._check), WantedExecution("head", self._check)]
        base, head = self._runner.execute(wanted)
        if _has_ended(base) and _has_ended(head):
            # The whole check counts first; the affected tests are repetitions of a part of it.
            self._results["base"].insert(0, base)
            self._results["head"].insert(0, head)
            return
        self.is_cut = True
        if self._affected is None or not self._results["head"]:
            # There is nothing else to compare.
            for tree, found in (("base", base), ("head", head)):
                self._results[tree] += [found] if found is not None else []
            return
        self._scope = "affected"
        narrowed = [WantedExecution("base", self._affected)]
        self._add(narrowed, self._runner.execute(narrowed))

    def repeat_failures(self) -> None:
        """Repeat the tests that newly fail, or that reproduce the problem, at both commits."""
        base, head = self._results["base"], self._results["head"]
        if base and head and (ids := needs_rerun(base[0], head[0])):
            self._repeat(ids, ("base", "head"))
        before = self._results["base_with_tests"]
        if before and head and (ids := reproductions_to_confirm(before[0], head[0])):
            self._repeat(ids, ("base_with_tests", "head"), times=1)

    def _repeat(
        self, ids: Sequence[str], trees: Sequence[TreeName], times: int = REPETITIONS
    ) -> None:
        tests = [each for each in ids if each != WHOLE_CHECK]
        narrowed = self._selection.only(self._check, tests) if len(tests) == len(ids) else None
        source = narrowed or (self._affected if self._scope == "affected" else None) or self._check
        wanted = [
            WantedExecution(tree, source, repetition)
            for tree in trees
            for repetition in range(1, times + 1)
        ]
        self._add(wanted, self._runner.execute(wanted))

    def compare(self, deleted_files: Sequence[str]) -> CheckComparison | None:
        """Return the comparison; None if the check was never executed at the change."""
        if not self._results["head"]:
            return None
        return compare_executions(
            self._check if self._scope == "full" else self._affected or self._check,
            self._scope,
            base=self._results["base"],
            base_with_tests=self._results["base_with_tests"],
            head=self._results["head"],
            deleted_files=deleted_files,
        )

    def _add(
        self, wanted: Sequence[WantedExecution], found: Sequence[CheckExecution | None]
    ) -> None:
        for each, execution in zip(wanted, found, strict=True):
            if execution is not None:
                self._results[each.tree].append(execution)


def _has_ended(execution: CheckExecution | None) -> bool:
    return execution is not None and execution.exit_code is not None
