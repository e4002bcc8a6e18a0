"""Verifies a change: executes the project's checks at base and at the change, and compares them.

The tests that the change affects are executed first, then the whole checks within the time that is
given. A test that fails now and did not before is repeated at both commits before it counts.
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
from resolver.verification.comparison import (
    WHOLE_CHECK,
    compare_executions,
    needs_rerun,
    reproductions_to_confirm,
)
from resolver.verification.decision import decide
from resolver.verification.renamed_tests import RenamedTestFiles
from resolver.verification.runner import (
    CheckRunner,
    OpenExecutor,
    RunnerOptions,
    TreeName,
    WantedExecution,
)
from resolver.verification.selection import CheckSelection

logger = logging.getLogger("resolver.verification")

REPETITIONS = 3
"""Number of times that a newly failing test is repeated at both commits."""

RESERVE = 0.25
"""Share of the time that is kept back from whole checks for the affected tests."""


@dataclass(frozen=True)
class VerificationRequest:
    """What a verification needs to know.

    options: what the checks are executed with.
    changed_files: paths of the files that the change adds, modifies or deletes.
    changed_tests: those of them that are added or changed test files. They are then executed on the
        base commit too.
    deleted_tests: those of them that are deleted test files.
    renamed_tests: test files that have another path with the change, by their old one.
    unprepared: given if the checks can't be executed in an environment that fits the change; then
        they are not executed.
    started: called with the runner before it executes anything, so that it can be interrupted.
    """

    selection: CheckSelection
    options: RunnerOptions
    changed_files: tuple[str, ...]
    changed_tests: tuple[str, ...] = ()
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
        has_tests = bool(request.changed_tests)
        one = _CheckVerification(check, request.selection, runner, renamed, has_tests)
        try:
            one.execute()
            one.repeat_failures()
        except SetupFailed:
            raise
        except SandboxError as error:
            logger.warning("%s was not verified: %s", check.name, error.what)
            obstacle = "sandbox_error"
        compared = one.compare(request.deleted_tests)
        comparisons += [compared] if compared is not None else []
        if runner.is_cancelled:
            return comparisons, "unfinished"
        if obstacle == "sandbox_error":
            return comparisons, obstacle
        # Where only the affected tests were compared, the time has limited nothing but the scope.
        if compared is None or (one.is_cut and compared.scope == "full"):
            obstacle = "time_limit"
    return comparisons, obstacle


class _CheckVerification:
    """The executions of one check, at all trees."""

    def __init__(
        self,
        check: ProjectCheck,
        selection: CheckSelection,
        runner: CheckRunner,
        renamed: RenamedTestFiles,
        has_tests: bool,
    ) -> None:
        self._check = check
        self._selection = selection
        self._runner = runner
        self._renamed = renamed
        self._has_tests = has_tests
        self._affected = selection.affected(check, False)
        self._scope: Scope = "full"
        self._results: dict[TreeName, list[CheckExecution]] = {
            "base": [], "base_with_tests": [], "head": [],
        }  # fmt: skip
        self.is_cut = False

    def execute(self) -> None:
        """Execute the check at base and at the change, the affected tests first.

        Where the change has tests, they are executed on the base commit too. The whole check counts
        if there is enough time for it at both commits, otherwise only the affected tests do.
        """
        # A part of the time is kept back, in which the affected tests are compared if the whole
        # check does not end.
        reserve = RESERVE * self._runner.options.seconds if self._affected else 0.0
        whole = [
            WantedExecution("head", self._check, reserve=reserve),
            WantedExecution("base", self._check, reserve=reserve),
        ]
        narrowed: list[WantedExecution] = []
        if self._affected is not None:
            narrowed.append(WantedExecution("head", self._affected))
        if self._has_tests:
            narrowed.append(WantedExecution("base_with_tests", self._affected or self._check))
        found = self._runner.execute([*narrowed, *whole])
        self._add(narrowed, found[: len(narrowed)])
        self._add_whole(*found[len(narrowed) :])

    def _add_whole(self, head: CheckExecution | None, base: CheckExecution | None) -> None:
        base = base and self._renamed.as_with_change(base)
        has_ended = all(each is not None and each.exit_code is not None for each in (base, head))
        if has_ended or self._affected is None or not self._results["head"]:
            # The whole check counts first; the affected tests repeat a part of it.
            self._results["base"][:0] = [base] if base is not None else []
            self._results["head"][:0] = [head] if head is not None else []
            self.is_cut = not has_ended
            return
        self.is_cut = True
        at_base = self._selection.affected(self._check, True)
        if at_base is None:
            return  # the change affects no test that the base commit has
        self._scope = "affected"
        narrowed = [WantedExecution("base", at_base)]
        self._add(narrowed, self._runner.execute(narrowed))

    def repeat_failures(self) -> None:
        """Repeat the tests that newly fail, or that reproduce the problem, at both commits."""
        base, head = self._results["base"], self._results["head"]
        affected = self._affected or self._check
        if base and head and (ids := needs_rerun(base[0], head[0])):
            whole = affected if self._scope == "affected" else self._check
            self._repeat(ids, ("base", "head"), whole)
        before = self._results["base_with_tests"]
        if before and head and (ids := reproductions_to_confirm(before[0], head[0])):
            self._repeat(ids, ("base_with_tests", "head"), affected, times=1)

    def _repeat(
        self,
        ids: Sequence[str],
        trees: Sequence[TreeName],
        whole: ProjectCheck,
        times: int = REPETITIONS,
    ) -> None:
        """Repeat these tests, or the check `whole`, which has them, if it can't be narrowed."""
        wanted = [
            WantedExecution(tree, self._only(tree, ids) or whole, repetition)
            for tree in trees
            for repetition in range(1, times + 1)
        ]
        self._add(wanted, self._runner.execute(wanted))

    def _only(self, tree: TreeName, ids: Sequence[str]) -> ProjectCheck | None:
        """Return the check for only these tests, as they are named in the tree."""
        if WHOLE_CHECK in ids:
            return None
        named = [self._renamed.id_at_base(each) for each in ids] if tree == "base" else ids
        return self._selection.only(self._check, named)

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
                is_base = each.tree == "base"
                seen = self._renamed.as_with_change(execution) if is_base else execution
                self._results[each.tree].append(seen)
