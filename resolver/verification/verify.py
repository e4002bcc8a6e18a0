"""Verifies a change: executes the project's checks at base and at the change, and compares them.

The tests that the change affects are executed first where they are a small part of the check, then
the whole checks within the time that is given, and then the tests of the change without its code. A
test that fails now and did not before is repeated at both commits before it counts.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from resolver.errors import SandboxError, SetupFailed
from resolver.models.verification import (
    CheckComparison,
    CheckExecution,
    ProjectCheck,
    Scope,
    TamperingFinding,
    UnpreparedEnvironment,
    Verification,
    VerificationReason,
)
from resolver.verification.altered_tests import (
    ALL_ALTERED,
    AlteredTests,
    has_fixed_elsewhere,
    tests_to_reproduce,
)
from resolver.verification.comparison import (
    WHOLE_CHECK,
    compare_executions,
    needs_rerun,
    reproductions_to_confirm,
)
from resolver.verification.decision import decide
from resolver.verification.renamed_tests import RenamedTestFiles
from resolver.verification.runner import (
    CheckRequest,
    CheckRunner,
    OpenExecutor,
    RunnerOptions,
    TreeName,
)
from resolver.verification.selection import CheckSelection

logger = logging.getLogger("resolver.verification")

REPETITIONS = 3
"""Number of times that a newly failing test is repeated at both commits."""

RESERVE = 0.25
"""Share of the time that is kept back from whole checks for narrowed ones."""

MAX_SHARE = 0.2
"""Maximum share of a check that is executed before the whole of it."""


@dataclass(frozen=True)
class VerificationRequest:
    """The input of a verification.

    options: what the checks are executed with.
    changed_files: paths of the files that the change adds, modifies or deletes.
    changed_tests: those of them that are added or changed test files. They are then executed on the
        base commit too.
    altered_tests: which tests of the changed test files differ from those of the base commit.
    deleted_tests: those of the changed files that are deleted test files.
    renamed_tests: test files that have another path with the change, by their old one.
    unprepared: given if the checks can't be executed in an environment that fits the change; then
        they are not executed.
    started: called with the runner before it executes anything, so that it can be interrupted.
    """

    selection: CheckSelection
    options: RunnerOptions
    changed_files: tuple[str, ...]
    changed_tests: tuple[str, ...] = ()
    altered_tests: AlteredTests = ALL_ALTERED
    deleted_tests: tuple[str, ...] = ()
    renamed_tests: Mapping[str, str] = field(default_factory=dict)
    tampering: tuple[TamperingFinding, ...] = ()
    unprepared: UnpreparedEnvironment | None = None
    started: Callable[[CheckRunner], None] = lambda _: None


def verify_change(request: VerificationRequest, open_executor: OpenExecutor) -> Verification:
    """Return what the project's checks show about the change.

    A verification that was interrupted, or whose sandbox was lost, is not verified. Neither is one
    whose environment can't be prepared from the files of the change: in another one, the checks
    would show nothing about it.
    """
    comparisons: list[CheckComparison] = []
    obstacle: VerificationReason = ""
    unprepared = request.unprepared
    if unprepared is None:
        with CheckRunner(request.options, open_executor) as runner:
            request.started(runner)
            try:
                comparisons, obstacle = _compare_all(request, runner)
            except SetupFailed as error:
                unprepared = None if runner.is_cancelled else _failed_setup(error)
                obstacle = "unfinished"
    verification = decide(
        comparisons,
        changed_files=request.changed_files,
        omitted=request.selection.omitted,
        tampering=request.tampering,
        obstacle=obstacle if unprepared is None else "environment",
    )
    return verification.model_copy(update={"unprepared": unprepared})


def _failed_setup(error: SetupFailed) -> UnpreparedEnvironment:
    return UnpreparedEnvironment(paths=error.paths, cause=error.why, detail=error.output)


def _compare_all(
    request: VerificationRequest, runner: CheckRunner
) -> tuple[list[CheckComparison], VerificationReason]:
    """Return the comparisons, and why there are not more of them or they are not complete."""
    comparisons: list[CheckComparison] = []
    obstacle: VerificationReason = ""
    for check in request.selection.checks:
        renamed = RenamedTestFiles(request.renamed_tests)
        verification = _CheckVerification(check, request, runner, renamed)
        try:
            verification.execute()
            verification.repeat_failures()
        except SetupFailed:
            raise
        except SandboxError as error:
            logger.warning("%s was not verified: %s", check.name, error.what)
            obstacle = "sandbox_error"
        compared = verification.compare(request.deleted_tests)
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
        self,
        check: ProjectCheck,
        request: VerificationRequest,
        runner: CheckRunner,
        renamed: RenamedTestFiles,
    ) -> None:
        self._check = check
        self._request = request
        self._selection = request.selection
        self._runner = runner
        self._renamed = renamed
        self._affected = self._selection.affected(check, False)
        self._scope: Scope = "full"
        self._results: dict[TreeName, list[CheckExecution]] = {
            "base": [], "base_with_tests": [], "head": [],
        }  # fmt: skip
        self.is_cut = False

    def execute(self) -> None:
        """Execute the check at base and at the change, then the change's tests without its code.

        The affected tests come first where that costs little. The whole check counts if there is
        enough time for it at both commits, otherwise only the affected tests do.
        """
        # A part of the time is kept back, in which the affected tests are compared if the whole
        # check does not end.
        reserve = RESERVE * self._runner.options.seconds if self._affected else 0.0
        whole = [
            CheckRequest("head", self._check, reserve=reserve),
            CheckRequest("base", self._check, reserve=reserve),
        ]
        first: list[CheckRequest] = []
        if self._affected is not None and self._affected.share <= MAX_SHARE:
            first.append(CheckRequest("head", self._affected.check))
        executions = self._runner.execute([*first, *whole])
        self._add(first, executions[: len(first)])
        self._add_whole(*executions[len(first) :])
        if self._request.changed_tests:
            self._execute_new_tests()

    def _add_whole(self, head: CheckExecution | None, base: CheckExecution | None) -> None:
        base = base and self._renamed.as_with_change(base)
        has_ended = all(
            execution is not None and execution.exit_code is not None for execution in (base, head)
        )
        if has_ended or not self._execute_affected():
            # The whole check counts first; the affected tests repeat a part of it.
            self._results["base"][:0] = [base] if base is not None else []
            self._results["head"][:0] = [head] if head is not None else []
        self.is_cut = not has_ended

    def _execute_affected(self) -> bool:
        """Execute the affected tests at both commits; False if they can't replace the check."""
        at_base = self._selection.affected(self._check, True)
        if self._affected is None or at_base is None:
            return False  # the change affects no test that the base commit has
        requests = [CheckRequest("base", at_base.check)]
        if not self._results["head"]:
            requests.append(CheckRequest("head", self._affected.check))
        self._add(requests, self._runner.execute(requests))
        if not self._results["head"]:
            return False
        self._scope = "affected"
        return True

    def _execute_new_tests(self) -> None:
        """Execute the change's tests on the base commit, and no others where that is possible.

        A test counts if it is new or altered, or if it failed before, because then the change's
        tests alone may be why it passes now.
        """
        base, head = self._results["base"], self._results["head"]
        if not head:
            return
        ids = tests_to_reproduce(base[0] if base else None, head[0], self._request.altered_tests)
        if head[0].cases and not ids:
            return
        requests = [CheckRequest("base_with_tests", self._of_new_tests(ids))]
        self._add(requests, self._runner.execute(requests))

    def _of_new_tests(self, ids: Sequence[str]) -> ProjectCheck:
        """Return the smallest check that has these tests."""
        # A parameter may be made from code that is not there at the base commit.
        functions = tuple(dict.fromkeys(test_id.partition("[")[0] for test_id in ids))
        narrowed = self._selection.only(self._check, functions) if functions else None
        files = self._request.changed_tests
        base = self._results["base"]
        if narrowed is None and not (base and has_fixed_elsewhere(base[0], ids, files)):
            narrowed = self._selection.in_files(self._check, files)
        return narrowed or self._largest()

    def _largest(self) -> ProjectCheck:
        """Return the check for all affected tests; the whole check if it can't be narrowed."""
        return self._affected.check if self._affected is not None else self._check

    def repeat_failures(self) -> None:
        """Repeat the tests that newly fail, or that reproduce the problem, at both commits."""
        base, head = self._results["base"], self._results["head"]
        if base and head and (ids := needs_rerun(base[0], head[0])):
            whole = self._largest() if self._scope == "affected" else self._check
            self._repeat(ids, ("base", "head"), whole)
        before = self._results["base_with_tests"]
        if before and head and (ids := reproductions_to_confirm(before[0], head[0])):
            self._repeat(ids, ("base_with_tests", "head"), self._of_new_tests(ids), times=1)

    def _repeat(
        self,
        ids: Sequence[str],
        trees: Sequence[TreeName],
        whole: ProjectCheck,
        times: int = REPETITIONS,
    ) -> None:
        """Repeat these tests, or the check `whole`, which has them, if it can't be narrowed."""
        requests = [
            CheckRequest(tree, self._only(tree, ids) or whole, repetition)
            for tree in trees
            for repetition in range(1, times + 1)
        ]
        self._add(requests, self._runner.execute(requests))

    def _only(self, tree: TreeName, ids: Sequence[str]) -> ProjectCheck | None:
        """Return the check for only these tests, as they are named in the tree."""
        if WHOLE_CHECK in ids:
            return None
        named = [self._renamed.id_at_base(test_id) for test_id in ids] if tree == "base" else ids
        return self._selection.only(self._check, named)

    def compare(self, deleted_files: Sequence[str]) -> CheckComparison | None:
        """Return the comparison; None if the check was never executed at the change."""
        if not self._results["head"]:
            return None
        return compare_executions(
            self._check if self._scope == "full" else self._largest(),
            self._scope,
            base=self._results["base"],
            base_with_tests=self._results["base_with_tests"],
            head=self._results["head"],
            deleted_files=deleted_files,
        )

    def _add(
        self, requests: Sequence[CheckRequest], executions: Sequence[CheckExecution | None]
    ) -> None:
        for request, execution in zip(requests, executions, strict=True):
            if execution is not None:
                is_base = request.tree == "base"
                with_names_of_change = (
                    self._renamed.as_with_change(execution) if is_base else execution
                )
                self._results[request.tree].append(with_names_of_change)
