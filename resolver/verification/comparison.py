"""Compares the executions of one check at the trees of a change, test by test.

The tests of the base commit are compared where they are the same: at the base, and at the change
with the tests of the base. The tests of the change are compared where they are the same, too: at
the change, and at the base with the tests of the change. All of this is computed from values, so it
can be repeated.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from resolver.models.verification import (
    CaseResult,
    CaseStatus,
    CheckComparison,
    CheckExecution,
    FlakyCase,
    ProjectCheck,
    Scope,
    TreeName,
)

CONFIRMATIONS = 3
"""Number of executions at each of two trees in which a reproduction must be seen. A test that fails
by chance in half of all executions is seen so in one of 64 verifications."""

_FAILING: tuple[CaseStatus, ...] = ("failed", "error")
_NUMBER = re.compile(r"\d+")

_NOT_LOADED = re.compile(
    r"Test suite failed to run|_FailedTest\b|^ERROR collecting|error during collection"
    r"|ImportError while (?:import|load)|\[(?:build|setup) failed\]|\(from function `setup",
    re.MULTILINE,
)
"""Matches messages of reports about a test that could not be loaded or set up."""

_OWN_ERROR = re.compile(
    r"failed on (?:setup|teardown)|fixture '[^'\n]{1,100}' not found|\bSyntaxError\b"
    r"|\bIndentationError\b|\bImportError\b|\bModuleNotFoundError\b|Cannot find module"
    r"|NoClassDefFoundError|ClassNotFoundException|NoSuchMethodError|initializationError"
    r"|Unresolved compilation|cannot find symbol"
)
"""Matches messages of reports about a test with the status `error` that could not be run."""

Statuses = Mapping[str, tuple[CaseStatus, ...]]
"""The statuses of a test in the executions at one tree, by its id."""


@dataclass(frozen=True)
class TreeResults:
    """The executions of a check at one tree.

    whole: those of the check itself. narrowed: those of some of its tests.
    """

    whole: tuple[CheckExecution, ...] = ()
    narrowed: tuple[CheckExecution, ...] = ()

    @property
    def executions(self) -> tuple[CheckExecution, ...]:
        """Return all of them, those of the whole check first."""
        return self.whole + self.narrowed

    @property
    def result(self) -> CheckExecution | None:
        """Return the one that stands for the tree: a repetition of the whole check replaces it."""
        return next(iter(self.whole[::-1] or self.narrowed), None)

    def statuses(self, check: str) -> dict[str, tuple[CaseStatus, ...]]:
        """Return the statuses of all tests by id, one for each execution that has the test.

        check: name of the check, which is a test of its own: its exit code counts where no failed
            test explains it.
        """
        by_test: defaultdict[str, tuple[CaseStatus, ...]] = defaultdict(tuple)
        for execution in self.executions:
            for name, status in execution.statuses.items():
                by_test[name] += (status,)
        for execution in self.whole:
            failed: CaseStatus = "skipped" if execution.failed else "failed"
            if execution.exit_code is not None:
                by_test[check] += ("passed" if execution.exit_code == 0 else failed,)
        return dict(by_test)


Results = Mapping[TreeName, TreeResults]
_NONE = TreeResults()


def compare_check(check: ProjectCheck, scope: Scope, results: Results) -> CheckComparison:
    """Return what the executions of a check show. There is at least one at the change."""
    base, head = results.get("base", _NONE), results["head"]
    old = results.get("head_with_base_tests", head)
    without_code = results.get("base_with_tests", base)
    assert head.result is not None, "only a check that was executed at the change is compared"
    seen = {tree: found.statuses(check.name) for tree, found in results.items()}
    at_base, at_head = seen.get("base", {}), seen["head"]
    at_old, at_without = (
        seen.get("head_with_base_tests", at_head),
        seen.get("base_with_tests", at_base),
    )
    flaky = _flaky_tests(*seen.values())
    unstable = {case.id for case in flaky}
    passed_before = {name for name, statuses in at_base.items() if _always(statuses, "passed")}
    failing_old, failing_head = _failing(at_old) - unstable, _failing(at_head) - unstable
    new_failures = _unexplained(failing_head, at_base) - {check.name}
    renamed = at_old.keys() - at_base.keys() - _only_in(at_old, at_base)
    broken = failing_old & passed_before | _unexplained(failing_old, at_base) & renamed
    missing = _missing_tests(base, old)
    former = set[str]()
    if old is not head:
        if any(execution.cases for execution in old.executions):
            # An exit code may only say that the code lacks the tests of the change.
            broken -= {check.name}
        broken |= failing_head & passed_before & {check.name}
        # By its own name: the test may be in a file that was moved.
        failing_now = set(map(_own_name, _failing(at_head)))
        # Tests that can't be loaded with the change either are not altered but lost.
        lost = broken if new_failures & _not_started(head) else broken | missing
        former = {name for name in lost if _own_name(name) not in failing_now}
    new_failures -= broken

    new_tests = _only_in(at_head, at_base) - {check.name}
    passing = {name for name in new_tests if _always(at_head[name], "passed")}
    has_own_tests = without_code is not base
    not_run = passing - at_without.keys() | (passing & _not_started(without_code))
    return CheckComparison(
        name=check.name,
        command=check.command,
        scope=scope,
        base=base.result,
        base_with_tests=without_code.result if has_own_tests else None,
        head=head.result,
        head_with_base_tests=old.result if old is not head else None,
        reproduction=_sorted(_confirmed(at_head, at_without) - unstable & _started(without_code)),
        useless=_sorted(n for n in passing if _always(at_without.get(n, ()), "passed")),
        not_run=_sorted(not_run) if has_own_tests else (),
        broken=_sorted(broken),
        missing=_sorted(missing),
        former=_sorted(former),
        failing=_sorted(new_failures) if base.result else (),
        known=_sorted(head.result.failed - new_failures - broken - unstable) if base.result else (),
        flaky=flaky,
        added=_sorted(new_tests) if base.result else (),
    )  # fmt: skip


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _always(statuses: Collection[CaseStatus], expected: CaseStatus) -> bool:
    return bool(statuses) and all(status == expected for status in statuses)


def _failing(tests: Statuses) -> set[str]:
    """Return the tests that fail in each execution."""
    return {name for name, seen in tests.items() if all(status in _FAILING for status in seen)}


def _flaky_tests(*trees: Statuses) -> tuple[FlakyCase, ...]:
    """Return the tests that passed and failed at one of the trees, with the counts of these."""
    counts: defaultdict[str, Counter[bool]] = defaultdict(Counter)
    for tests in trees:
        for name, seen in tests.items():
            outcomes = [status == "passed" for status in seen if status != "skipped"]
            if len(set(outcomes)) == 2:
                counts[name].update(outcomes)
    return tuple(
        FlakyCase(id=name, passed=count[True], failed=count[False])
        for name, count in sorted(counts.items())
    )


def _missing_tests(base: TreeResults, later: TreeResults) -> set[str]:
    """Return the tests that ran at the base and in no execution of the whole check later."""
    if base.result is None:
        return set()
    ran = _tests_that_ran(base.result)
    skipped = base.result.statuses.keys() - ran
    missing = [
        _only_in(ran, _tests_that_ran(execution) - skipped)
        | (ran & execution.statuses.keys() - _tests_that_ran(execution))
        for execution in later.whole or later.narrowed
        if execution.exit_code is not None
    ]
    return set.intersection(*missing) if missing else set()


def _tests_that_ran(execution: CheckExecution) -> set[str]:
    return {name for name, status in execution.statuses.items() if status != "skipped"}


def _only_in(tests: Collection[str], others: Collection[str]) -> set[str]:
    """Return the tests that are not among the others, under another name either.

    A time or a random value in a test's name is another one in each execution, so such a test is
    recognized by its function and by the number of cases, before it is called missing or new.
    """
    left, right = set(tests) - set(others), set(others) - set(tests)
    counts, spare = Counter(map(_function_of, left)), Counter(map(_function_of, right))
    return {name for name in left if counts[_function_of(name)] > spare[_function_of(name)]}


def _unexplained(failing: set[str], base: Statuses) -> set[str]:
    """Return the tests that did not fail at the base.

    If as many cases of a test function failed there, they are the same ones under other names: a
    row that is added before them, or a file that is moved, changes what they are called.
    """
    before = {name for name, statuses in base.items() if statuses[0] in _FAILING}
    known, now = Counter(map(_own_name, before)), Counter(map(_own_name, failing))
    return {t for t in failing - before if now[_own_name(t)] > known[_own_name(t)]}


def _confirmed(with_code: Statuses, without_code: Statuses) -> set[str]:
    """Return the tests that were seen often enough to fail without the code and pass with it."""
    return {
        name
        for name in _failing(without_code)
        if _always(with_code.get(name, ()), "passed")
        and min(len(with_code[name]), len(without_code[name])) >= CONFIRMATIONS
    }


def _started(results: TreeResults) -> set[str]:
    """Return the tests that started and failed by themselves, wherever they failed."""
    failing = {case.id for e in results.executions for case in e.cases if case.has_failed}
    return failing - _not_started(results)


def _not_started(results: TreeResults) -> set[str]:
    """Return the failing tests that could not be loaded or set up."""
    return {
        case.id
        for execution in results.executions
        for case in execution.cases
        if case.has_failed and not _has_started(case)
    }


def _has_started(case: CaseResult) -> bool:
    is_file = case.file is not None and case.file.endswith(case.id)
    if is_file or _NOT_LOADED.search(case.message) or _NOT_LOADED.search(case.id):
        return False
    return case.status == "failed" or bool(case.message and not _OWN_ERROR.search(case.message))


# -- what is to be repeated


def needs_rerun(results: Results) -> tuple[str, ...]:
    """Return the tests that pass at the base and fail with the change, or fail with it and are new.

    They are repeated before they count.
    """
    base, head = results.get("base", _NONE).result, results.get("head", _NONE).result
    if base is None or head is None:
        return ()
    old = results.get("head_with_base_tests", results["head"]).result or head
    return _sorted(base.passed & old.failed | (head.failed - base.failed))


def fails_without_test(base: CheckExecution, later: CheckExecution) -> bool:
    """Return True if a check failed in another way without a failed test that explains it."""
    is_worse = later.exit_code not in (0, None, base.exit_code)
    return is_worse and not later.failed - base.failed


def reproductions_to_confirm(results: Results) -> tuple[str, ...]:
    """Return the tests that failed without the code of the change and pass with it."""
    without = results.get("base_with_tests", results.get("base", _NONE)).result
    head = results.get("head", _NONE).result
    return _sorted(without.failed & head.passed) if without and head else ()


# -- names of tests


def _function_of(name: str) -> str:
    """Return the name of a test without its parameters and its numbers."""
    return _NUMBER.sub("0", name.partition("[")[0])


def _own_name(name: str) -> str:
    """Return the name of a test's function without its file, module and class."""
    own = _function_of(name).rpartition("::")[2]
    return own if " " in own else own.rpartition(".")[2]


def function_names(ids: Sequence[str]) -> tuple[str, ...]:
    """Return the tests without their parameters, which another tree may name differently."""
    return tuple(dict.fromkeys(test_id.partition("[")[0] for test_id in ids))


def is_in_files(case: CaseResult, files: Collection[str]) -> bool:
    """Return True if the test is in one of the files, as far as its report says where it is."""
    if case.file in files or case.id.partition("::")[0] in files:
        return True
    if case.file or not files:
        return False
    words = set(re.split(r"\W+", case.id))
    return any(PurePosixPath(path).stem in words for path in files)
