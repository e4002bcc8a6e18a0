"""Compares the executions of one check at the trees of a change, test by test.

The tests of the base commit are compared where they are the same: at the base, and at the change
with the tests of the base. The tests of the change are compared where they are the same, too: at
the change, and at the base with the tests of the change. All of this is computed from values, so it
can be repeated.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePosixPath

from resolver.models.verification import (
    WORST_FIRST,
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
    r"|ImportError while (?:import|load)|\[(?:build|setup) failed\]",
    re.MULTILINE,
)
"""Matches messages of reports about a test whose file could not be loaded."""

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

    @property
    def statuses(self) -> Statuses:
        """Return the statuses of all tests by id, one for each execution that has the test."""
        by_test: dict[str, tuple[CaseStatus, ...]] = {}
        for execution in self.executions:
            for name, status in execution.statuses.items():
                by_test[name] = (*by_test.get(name, ()), status)
        return by_test


Results = Mapping[TreeName, TreeResults]
_NONE = TreeResults()
_BOTH: tuple[TreeName, TreeName] = ("base", "head")


@dataclass(frozen=True)
class _TreeStatuses:
    """The statuses at the four trees: of the base's tests, and of the change's tests."""

    base: Statuses
    old: Statuses
    new: Statuses
    without_code: Statuses
    unstable: frozenset[str] = field(default_factory=frozenset)


def compare_check(check: ProjectCheck, scope: Scope, results: Results) -> CheckComparison:
    """Return what the executions of a check show. There is at least one at the change."""
    aligned = {tree: _aligned(tree, results) for tree in results}
    base, head = aligned.get("base", _NONE), aligned["head"]
    old = aligned.get("head_with_base_tests") or head
    without_code = aligned.get("base_with_tests") or base
    assert head.result is not None, "only a check that was executed at the change is compared"
    flaky = (*_flaky_tests(base, old, head, without_code), *_flaky_check(check, base, old, head))
    seen = _TreeStatuses(
        base.statuses, old.statuses, head.statuses, without_code.statuses,
        frozenset(case.id for case in flaky),
    )  # fmt: skip
    missing = _missing_tests(base, old)
    broken = _broken_tests(seen)
    whole = _broken_check(check, seen, base, head)
    former = set[str]()
    if old is not head:
        # By its own name: the test may be in a file that was moved.
        failing_now = {_own_name(name) for name, statuses in seen.new.items() if _fails(statuses)}
        # Tests that can't be loaded with the change either are not altered but lost.
        is_loaded = not _new_failures(seen) & _not_run(head)
        lost = broken | missing if is_loaded else broken
        former = {name for name in lost if _own_name(name) not in failing_now}
        # With a report, an exit code may only say that the code lacks the tests of the change.
        has_report = any(execution.cases for execution in old.executions)
        fails_as_before = set() if has_report else _broken_check(check, seen, base, old) - whole
        former |= fails_as_before
        broken |= fails_as_before
    broken |= whole
    new_failures = _new_failures(seen) - broken
    new_tests = seen.new.keys() - seen.base.keys()
    confirmed = _confirmed(seen)
    ran = _ran_and_failed(without_code)
    has_own_tests = without_code is not base
    passing = {name for name in new_tests if _always(seen.new[name], "passed")}
    return CheckComparison(
        name=check.name,
        command=check.command,
        scope=scope,
        base=base.result,
        base_with_tests=without_code.result if has_own_tests else None,
        head=head.result,
        head_with_base_tests=old.result if old is not head else None,
        reproduction=tuple(sorted(confirmed & ran)),
        useless=_sorted(n for n in passing if _always(seen.without_code.get(n, ()), "passed")),
        not_run=_sorted(passing - seen.without_code.keys() | (passing & _not_run(without_code)))
        if has_own_tests
        else (),
        broken=tuple(sorted(broken)),
        missing=tuple(sorted(missing)),
        former=tuple(sorted(former)),
        failing=tuple(sorted(new_failures)) if base.result else (),
        known=_sorted(head.result.failed - new_failures - broken - seen.unstable)
        if base.result
        else (),
        flaky=flaky,
        added=tuple(sorted(new_tests)) if base.result else (),
    )


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


# -- tests of the base


def _missing_tests(base: TreeResults, old: TreeResults) -> set[str]:
    """Return the tests that ran at the base and in no execution of the whole check later."""
    if base.result is None:
        return set()
    ran = {name for name, status in base.result.statuses.items() if status != "skipped"}
    later = [e for e in old.whole or old.narrowed if e.exit_code is not None]
    if not later:
        return set()
    statuses = chain.from_iterable(execution.statuses.items() for execution in later)
    return ran - {name for name, status in statuses if status != "skipped"}


def _broken_tests(seen: _TreeStatuses) -> set[str]:
    """Return the tests that always passed at the base and always fail with the change."""
    passed = {name for name, statuses in seen.base.items() if _always(statuses, "passed")}
    return {name for name in passed if _fails(seen.old.get(name, ()))} - seen.unstable


def _broken_check(
    check: ProjectCheck, seen: _TreeStatuses, base: TreeResults, later: TreeResults
) -> set[str]:
    """Return the check's name if it passed at the base and fails later without a failed test."""
    passed = bool(base.whole) and all(execution.exit_code == 0 for execution in base.whole)
    fails = bool(later.whole) and all(
        execution.exit_code not in (0, None) and not execution.failed for execution in later.whole
    )
    return {check.name} if passed and fails and check.name not in seen.unstable else set()


# -- tests of the change


def _new_failures(seen: _TreeStatuses) -> set[str]:
    """Return the tests that always fail with the change, and that the base does not explain.

    If as many cases of a test function failed at the base, they are the same ones under other
    names: a row that is added before them, or a file that is moved, changes what they are called.
    """
    failing = {name for name, statuses in seen.new.items() if _fails(statuses)} - seen.unstable
    before = {name for name, statuses in seen.base.items() if statuses[0] in _FAILING}
    known = Counter(map(_own_name, before))
    now = Counter(map(_own_name, failing))
    explained = {function for function in now if now[function] <= known[function]}
    return {name for name in failing - before if _own_name(name) not in explained}


def _confirmed(seen: _TreeStatuses) -> set[str]:
    """Return the tests that were seen often enough to fail without the code and pass with it."""
    return {
        name
        for name, statuses in seen.new.items()
        if _always(statuses, "passed")
        and _fails(seen.without_code.get(name, ()))
        and min(len(statuses), len(seen.without_code[name])) >= CONFIRMATIONS
    } - seen.unstable


def _ran_and_failed(results: TreeResults) -> set[str]:
    """Return the tests that started and failed by themselves, wherever they failed."""
    failing = [case for e in results.executions for case in e.cases if case.has_failed]
    own = {case.id for case in failing if _started(case)}
    return own - {case.id for case in failing if not _started(case)}


def _not_run(results: TreeResults) -> set[str]:
    failing = [case for e in results.executions for case in e.cases if case.has_failed]
    return {case.id for case in failing if not _started(case)}


def _started(case: CaseResult) -> bool:
    """Return True if the failing test itself was started."""
    if _NOT_LOADED.search(case.message) or _NOT_LOADED.search(case.id):
        return False
    return case.status == "failed" or bool(case.message and not _OWN_ERROR.search(case.message))


# -- what is to be repeated


def needs_rerun(results: Results) -> tuple[str, ...]:
    """Return the tests that pass at the base and fail with the change, or fail with it and are new.

    They are repeated before they count.
    """
    base, head = (results.get(tree, _NONE).result for tree in _BOTH)
    old_results = results.get("head_with_base_tests")
    old = old_results.result if old_results else head
    if base is None or head is None:
        return ()
    broken = base.passed & (old.failed if old else set())
    return tuple(sorted(broken | (head.failed - base.failed)))


def fails_without_test(base: CheckExecution, later: CheckExecution) -> bool:
    """Return True if a check failed in another way without a failed test that explains it."""
    is_worse = later.exit_code not in (0, None, base.exit_code)
    return is_worse and not later.failed - base.failed


def reproductions_to_confirm(results: Results) -> tuple[str, ...]:
    """Return the tests that failed without the code of the change and pass with it."""
    base, head = (results.get(tree, _NONE).result for tree in _BOTH)
    with_tests = results.get("base_with_tests")
    without = with_tests.result if with_tests else base
    if without is None or head is None:
        return ()
    return tuple(sorted(without.failed & head.passed))


# -- names of tests


def _aligned(tree: TreeName, results: Results) -> TreeResults:
    """Return the results with the names of the base for tests whose names change by themselves.

    A time or a random value in a test's name is another one in each execution, so such a test is
    recognized by its function and by the number of cases, before it is called missing.
    """
    with_base_tests = {"base", "head_with_base_tests"}
    if "head_with_base_tests" not in results:
        with_base_tests.add("head")
    reference = results.get("base", _NONE).result
    if reference is None or tree not in with_base_tests:
        return results[tree]
    return TreeResults(
        tuple(_with_names_of(reference, execution) for execution in results[tree].whole),
        tuple(_with_names_of(reference, execution) for execution in results[tree].narrowed),
    )


def _with_names_of(reference: CheckExecution, execution: CheckExecution) -> CheckExecution:
    known, found = reference.statuses, execution.statuses
    left = _by_function(known, found)
    # Failing cases first, so that what failed before is matched with what fails now.
    added = _by_function(found, known)
    renamed = {
        new: old
        for function, names in added.items()
        if len(names) >= len(left.get(function, ()))
        for new, old in zip(names, left.get(function, ()), strict=False)
    }
    if not renamed:
        return execution
    cases = tuple(
        case.model_copy(update={"id": renamed.get(case.id, case.id)}) for case in execution.cases
    )
    return execution.model_copy(update={"cases": cases})


def _by_function(
    statuses: Mapping[str, CaseStatus], others: Collection[str]
) -> dict[str, list[str]]:
    """Return the tests that are not among the others, by function, the failing ones first."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    rank = WORST_FIRST.index
    for name in sorted(statuses, key=lambda name: (rank(statuses[name]), name)):
        if name not in others:
            found[_function_of(name)].append(name)
    return found


def _function_of(name: str) -> str:
    """Return the name of a test without its parameters and its numbers."""
    return _NUMBER.sub("0", name.partition("[")[0])


def _own_name(name: str) -> str:
    """Return the name of a test's function without its file, module and class."""
    own = _function_of(name).rpartition("::")[2]
    return own if " " in own else own.rpartition(".")[2]


# -- results


def _always(statuses: Collection[CaseStatus], expected: CaseStatus) -> bool:
    return bool(statuses) and all(status == expected for status in statuses)


def _fails(statuses: Collection[CaseStatus]) -> bool:
    return bool(statuses) and all(status in _FAILING for status in statuses)


def _flaky_tests(*trees: TreeResults) -> tuple[FlakyCase, ...]:
    """Return the tests that passed and failed at one of the trees, with the counts of these."""
    counts: defaultdict[str, Counter[bool]] = defaultdict(Counter)
    for statuses in {id(tree): tree.statuses for tree in trees}.values():
        for name, seen in statuses.items():
            outcomes = [status == "passed" for status in seen if status != "skipped"]
            if len(set(outcomes)) == 2:
                counts[name].update(outcomes)
    return tuple(
        FlakyCase(id=name, passed=count[True], failed=count[False])
        for name, count in sorted(counts.items())
    )


def _flaky_check(check: ProjectCheck, *trees: TreeResults) -> tuple[FlakyCase, ...]:
    """Return the check itself if it has no report and its exit code differs at one tree."""
    passed = failed = 0
    for tree in {id(tree): tree for tree in trees}.values():
        codes = [execution.exit_code == 0 for execution in tree.whole]
        if len(set(codes)) == 2 and not any(execution.cases for execution in tree.whole):
            passed, failed = passed + codes.count(True), failed + codes.count(False)
    return (FlakyCase(id=check.name, passed=passed, failed=failed),) if failed else ()


def is_in_files(case: CaseResult, files: Collection[str]) -> bool:
    """Return True if the test is in one of the files, as far as its report says where it is."""
    if case.file in files or case.id.partition("::")[0] in files:
        return True
    if case.file or not files:
        return False
    words = set(re.split(r"\W+", case.id))
    return any(PurePosixPath(path).stem in words for path in files)


def function_names(ids: Sequence[str]) -> tuple[str, ...]:
    """Return the tests without their parameters, which another tree may name differently."""
    return tuple(dict.fromkeys(test_id.partition("[")[0] for test_id in ids))
