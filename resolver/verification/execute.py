"""Executes the project's checks at the trees of a change, in an order that saves time.

The tests that the change affects are executed first, then the whole check once at each tree that
differs in code or in the tests of the base, within the time that is given, and then the tests of
the change without its code. A test that fails now and did not before is repeated before it counts,
and so is one that shows what the change solves.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from resolver.errors import SandboxError, SetupFailed
from resolver.models.verification import (
    CaseResult,
    CheckComparison,
    CheckExecution,
    MissingEnvironment,
    ProjectCheck,
    ReviewPoint,
    Scope,
    TreeName,
    UnpreparedEnvironment,
    Verification,
    VerificationReason,
)
from resolver.verification.comparison import (
    CONFIRMATIONS,
    TreeResults,
    compare_check,
    fails_without_test,
    function_names,
    is_in_files,
    needs_rerun,
    reproductions_to_confirm,
)
from resolver.verification.control import control_test
from resolver.verification.decide import decide
from resolver.verification.missing_environment import find_missing_environment
from resolver.verification.runner import CheckRequest, CheckRunner
from resolver.verification.runners import narrow_to_files, narrow_to_tests
from resolver.verification.selection import CheckSelection

logger = logging.getLogger("resolver.verification")

REPETITIONS = 3
"""Number of times that a newly failing test is repeated, at each tree that has it."""

RESERVE = 0.25
"""Share of the time that is kept back from whole checks for narrowed ones."""


@dataclass(frozen=True)
class VerificationRequest:
    """The input of a verification.

    changed_files: paths of the files that the change adds, modifies or deletes.
    changed_tests: those of them that are added or changed test files.
    review: parts of the change that a person must look at.
    unprepared: given if the checks can't be executed in an environment that fits the change; then
        they are not executed.
    suggested_setup: the usual set-up of the project, if it was not executed.
    interruptible: returns a context in which the function is called, from another thread, to end
        the checks.
    """

    selection: CheckSelection
    changed_files: tuple[str, ...]
    changed_tests: tuple[str, ...] = ()
    review: tuple[ReviewPoint, ...] = ()
    unprepared: UnpreparedEnvironment | None = None
    suggested_setup: str | None = None
    interruptible: Callable[[Callable[[], None]], AbstractContextManager[object]] = nullcontext


def verify_change(request: VerificationRequest, runner: CheckRunner) -> Verification:
    """Return what the project's checks show about the change.

    A verification that was interrupted, or whose sandbox was lost, is not verified. Neither is one
    whose environment can't be prepared from the files of the change: in another one, the checks
    would show nothing about it.
    """
    comparisons: list[CheckComparison] = []
    obstacle: VerificationReason | None = None
    unprepared = request.unprepared
    if unprepared is None:
        with runner, request.interruptible(runner.interrupt):
            try:
                comparisons, obstacle = _compare_all(request, runner)
            except SetupFailed as error:
                obstacle = "unfinished"
                if not runner.is_cancelled:
                    unprepared = UnpreparedEnvironment(
                        paths=error.paths, cause=error.why, detail=error.output
                    )
    verification = decide(
        comparisons,
        changed_files=request.changed_files,
        omitted=request.selection.omitted,
        review=request.review,
        obstacle=obstacle if unprepared is None else "environment",
    )
    lacks = _find_what_is_lacking(verification, request.suggested_setup)
    return verification.model_copy(update={"unprepared": unprepared, "lacks": lacks})


def _find_what_is_lacking(
    verification: Verification, suggested_setup: str | None
) -> MissingEnvironment | None:
    """Return why no test ran at the base, which is no fault of the change; None if tests ran."""
    if verification.reason not in {"base_failed_to_run", "failed_at_both"}:
        return None
    bases = (check.base for check in verification.checks if check.base is not None)
    found = (find_missing_environment(base, suggested_setup) for base in bases)
    return next(filter(None, found), None)


def _compare_all(
    request: VerificationRequest, runner: CheckRunner
) -> tuple[list[CheckComparison], VerificationReason | None]:
    """Return the comparisons, and why there are not more of them or they are not complete."""
    comparisons: list[CheckComparison] = []
    obstacle: VerificationReason | None = None
    for check in request.selection.checks:
        verification = _CheckVerification(check, request, runner)
        try:
            verification.execute()
            verification.repeat_failures()
        except SetupFailed:
            raise
        except SandboxError as error:
            logger.warning("%s was not verified: %s", check.name, error.what)
            obstacle = "sandbox_error"
        compared = verification.compare()
        comparisons += [compared] if compared is not None else []
        if runner.is_cancelled:
            return comparisons, "unfinished"
        if obstacle == "sandbox_error":
            return comparisons, obstacle
        # Where only the affected tests were compared, the time has limited nothing but the scope.
        if compared is None or (verification.is_cut and compared.scope == "full"):
            obstacle = "time_limit"
    return comparisons, obstacle


class _CheckVerification:
    """The executions of one check, at all trees."""

    def __init__(
        self, check: ProjectCheck, request: VerificationRequest, runner: CheckRunner
    ) -> None:
        self._check = self._counted = check
        self._request = request
        self._runner = runner
        self._affected = narrow_to_files(check, request.selection.touched)
        self._scope: Scope = "full"
        self._whole: defaultdict[TreeName, list[CheckExecution]] = defaultdict(list)
        self._narrowed: defaultdict[TreeName, list[CheckExecution]] = defaultdict(list)
        known = runner.trees
        trees: Sequence[TreeName] = ("head", "head_with_base_tests", "base")
        self._whole_trees = [tree for tree in trees if tree in known]
        self._without_code: TreeName = "base_with_tests" if "base_with_tests" in known else "base"
        self._repetitions = Counter[tuple[TreeName, str]]()
        self._hides_failures = False
        self.is_cut = False

    def execute(self) -> None:
        """Execute the check at the trees, and the tests of the change without its code.

        The affected tests come first. The whole check counts if there is enough time for it at all
        trees, otherwise only the affected tests do.
        """
        # A part of the time is kept back, in which the affected tests are compared if the whole
        # check does not end.
        reserve = RESERVE * self._runner.seconds if self._affected else 0.0
        first = [self._next_request("head", self._affected)] if self._affected else []
        whole = [self._next_request(tree, self._check, reserve) for tree in self._whole_trees]
        executions = self._runner.execute([*first, *whole])
        self._add(self._narrowed, first, executions[: len(first)])
        of_whole = executions[len(first) :]
        self.is_cut = any(e is None or e.exit_code is None for e in of_whole)
        if not self.is_cut or not self._execute_affected():
            self._add(self._whole, whole, of_whole)
        if self._without_code != "base":
            self._execute_new_tests()

    def _execute_affected(self) -> bool:
        """Execute the affected tests at the other trees; False if they can't replace the check."""
        at_base = narrow_to_files(self._check, self._request.selection.touched_at_base)
        if self._affected is None or at_base is None:
            return False  # the change affects no test that the base commit has
        self._execute_at([(tree, at_base) for tree in self._whole_trees[1:]])
        if not all(self._narrowed[tree] for tree in self._whole_trees):
            return False
        self._scope, self._counted = "affected", self._affected
        return True

    def _execute_new_tests(self) -> None:
        """Execute the change's tests without its code, and no others where that is possible.

        A test counts if it is in a file that the change adds or alters, or if it did not pass
        before, because then the change's tests alone may be why it passes now.
        """
        head, base = self._results("head").result, self._results("base").result
        if head is None:
            return
        files = self._request.changed_tests
        may_be_altered = {case.id for case in head.cases if is_in_files(case, files)}
        passed_before = base.passed if base is not None else set[str]()
        ids = tuple(sorted(head.passed - (passed_before - may_be_altered)))
        if ids or not head.cases:
            # By file: a test that is named, and whose file can't be loaded, ends all of pytest's.
            check = self._in_files(ids, files) or self._smallest("base_with_tests", ids)
            self._execute_at([("base_with_tests", check)])

    def _smallest(self, tree: TreeName, ids: Sequence[str]) -> ProjectCheck:
        """Return the smallest check that has these tests in the tree."""
        # A parameter may be made from code that is not there at the base commit.
        narrowed = narrow_to_tests(self._check, function_names(ids))
        if narrowed is None and tree in {"head", "base_with_tests"}:
            narrowed = self._in_files(ids, self._request.changed_tests) or self._affected
        return narrowed or self._counted

    def _in_files(self, ids: Sequence[str], files: Sequence[str]) -> ProjectCheck | None:
        """Return the check of these test files of the change; None if one of the tests is not in
        them."""
        is_complete = all(is_in_files(case, files) for case in self._cases_of(ids))
        return narrow_to_files(self._check, files) if is_complete else None

    def _cases_of(self, ids: Sequence[str]) -> list[CaseResult]:
        """Return the results of these tests with the change."""
        head, wanted = self._results("head").result, set(ids)
        return [case for case in head.cases if case.id in wanted] if head else []

    def repeat_failures(self) -> None:
        """Repeat what newly fails, and what shows that the change is needed."""
        self._repeat_lost_tests()
        results = self._all_results()
        if ids := needs_rerun(results):
            self._repeat(ids, dict.fromkeys(self._whole_trees, REPETITIONS))
        if ids := reproductions_to_confirm(results):
            self._confirm(ids)

    def _repeat_lost_tests(self) -> None:
        """Repeat the whole check where it fails for a reason that no test says."""
        base = self._results("base").result
        if base is None or self._scope != "full":
            return
        for tree in self._whole_trees[:-1]:
            first = self._results(tree).result
            if first is not None and fails_without_test(base, first):
                # Without a report, the exit code of one execution is all that is known of a tree.
                again: list[TreeName] = [tree] if base.cases else [tree, "base"] * REPETITIONS
                self._execute_at([(at, self._check) for at in again], self._whole)

    def _confirm(self, ids: Sequence[str]) -> None:
        """Repeat the tests that fail without the code and pass with it, the last time beside a test
        that must fail."""
        known = dict.fromkeys(case.file for case in self._cases_of(ids) if case.file)
        files = tuple(known) or self._request.changed_tests
        tree, changed = self._runner.trees["head"], self._request.changed_files
        control = control_test(self._check.runner, next(iter(files), ""), tree, changed)
        last = 1 if control else 0
        trees: Sequence[TreeName] = (self._without_code, "head")
        seen = {tree: self._number_of_executions(tree, ids) for tree in trees}
        self._repeat(ids, {tree: CONFIRMATIONS - last - seen[tree] for tree in trees})
        if control is None:
            return
        narrowed = self._in_files(ids, tuple(dict.fromkeys((*files, control.path)))) or self._check
        check = narrowed.model_copy(update={"files": {control.path: control.text}})
        requests = [self._next_request(tree, check) for tree in trees]
        executions = self._runner.execute(requests)
        failed = [execution and control.has_failed(execution) for execution in executions]
        self._hides_failures = failed == [True, False]
        cleared = [execution and control.without(execution) for execution in executions]
        self._add(self._narrowed, requests, cleared)

    def _number_of_executions(self, tree: TreeName, ids: Sequence[str]) -> int:
        executions = self._results(tree).executions
        return sum(set(ids) <= execution.statuses.keys() for execution in executions)

    def _repeat(self, ids: Sequence[str], times: Mapping[TreeName, int]) -> None:
        """Repeat these tests, or the smallest check that has them. times: how often, by tree."""
        checks = {tree: self._smallest(tree, ids) for tree in times}
        self._execute_at([(tree, checks[tree]) for tree in times for _ in range(times[tree])])

    def _execute_at(
        self,
        wanted: Sequence[tuple[TreeName, ProjectCheck]],
        to: Mapping[TreeName, list[CheckExecution]] | None = None,
    ) -> None:
        """Execute checks at trees. to: where the results are added; those of some tests if None."""
        requests = [self._next_request(tree, check) for tree, check in wanted]
        executions = self._runner.execute(requests)
        self._add(self._narrowed if to is None else to, requests, executions)

    def _next_request(
        self, tree: TreeName, check: ProjectCheck, reserve: float = 0.0
    ) -> CheckRequest:
        """Return the request of a further execution."""
        number = self._repetitions[tree, check.command]
        self._repetitions[tree, check.command] += 1
        return CheckRequest(tree, check, number, reserve)

    def _add(
        self,
        to: Mapping[TreeName, list[CheckExecution]],
        requests: Sequence[CheckRequest],
        executions: Sequence[CheckExecution | None],
    ) -> None:
        for request, execution in zip(requests, executions, strict=True):
            if execution is not None:
                to[request.tree].append(execution)

    def _results(self, tree: TreeName) -> TreeResults:
        return TreeResults(tuple(self._whole[tree]), tuple(self._narrowed[tree]))

    def _all_results(self) -> dict[TreeName, TreeResults]:
        names: Sequence[TreeName] = (*self._whole_trees, "base_with_tests")
        return {tree: results for tree in names if (results := self._results(tree)).executions}

    def compare(self) -> CheckComparison | None:
        """Return the comparison; None if a tree with the change was never executed."""
        results = self._all_results()
        if not all(tree in results for tree in self._whole_trees[:-1]):
            return None
        compared = compare_check(self._counted, self._scope, results)
        return compared.model_copy(update={"hides_failures": self._hides_failures})
