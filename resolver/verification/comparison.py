"""Compares the executions of one check at the base commit with those at the change.

The first execution of a commit is the whole check; later ones repeat it, or some of its tests, to
tell a regression from a flaky test. All of this is computed from values, so it can be repeated.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import PurePosixPath

from resolver.models.verification import (
    CaseResult,
    CaseStatus,
    CheckComparison,
    CheckExecution,
    FlakyCase,
    ProjectCheck,
    Scope,
)

WHOLE_CHECK = ""
"""Returned by `needs_rerun` in place of a test: repeat the check, no single test explains it."""

COMPARED_OUTPUT = 2_000
"""Maximum number of characters of two outputs whose lines are counted; longer ones may be cut."""

_FAILING: tuple[CaseStatus, ...] = ("failed", "error")
_ORDER: tuple[CaseStatus, ...] = ("failed", "error", "passed", "skipped")
"""If a report has several results of one test, the first status in this order is the test's."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
"""Matches a memory address, which parametrized tests have in their names and which changes."""

_PROGRESS = re.compile(r"(?:^|\W)(?:ok|pass(?:ed)?)(?:\W|$)", re.IGNORECASE)
"""Matches a line that says that something passed, in the output of a check without a report."""

_VARIABLE = re.compile(
    r"/(?:tmp|var/folders)/\S+|\b(?:0x)?(?=[0-9a-fA-F]*\d)[0-9a-fA-F]+(?:[.:]\d+)*(?:[mnu]?s)?\b"
)
"""Matches what may differ between two executions: durations, counts, addresses, hashes."""

Statuses = dict[str, tuple[CaseStatus, ...]]
"""The statuses of a test in the executions of one commit, by its id."""


def compare_executions(
    check: ProjectCheck,
    scope: Scope,
    *,
    base: Sequence[CheckExecution],
    base_with_tests: Sequence[CheckExecution] = (),
    head: Sequence[CheckExecution],
    deleted_files: Collection[str] = (),
) -> CheckComparison:
    """Return what differs between the base commit and the change in one check.

    base, base_with_tests, head: the executions, the whole one first, then its repetitions. `head`
        has at least one. The tests of renamed files have the same names in all of them.
    deleted_files: test files that the change deletes. Their tests are `missing`, and no more,
        because the tampering findings list them.
    """
    before, after = statuses_of(base), statuses_of(head)
    with_tests = statuses_of(base_with_tests)
    last = case_statuses(head[0])
    ran = {
        name for name, statuses in before.items() if any(status != "skipped" for status in statuses)
    }
    excused = _ids_in(base, deleted_files)
    disappeared = {name for name in ran - excused if last.get(name, "skipped") == "skipped"}
    flaky = (*_flaky(before, after), *_flaky_check(check, base, head))
    unstable = {case.id for case in flaky}
    doubtful = unstable | {case.id for case in _flaky(with_tests)}
    broken = _broken_tests(before, after, last, disappeared, unstable)
    fixed = _fixed_tests(before, with_tests, after) - doubtful
    if check.name not in unstable:
        broken |= _broken_check(check, base, head)
        fixed |= _fixed_check(check, base_with_tests or base, head)
    return CheckComparison(
        name=check.name,
        command=check.command,
        scope=scope,
        base=base[0] if base else None,
        base_with_tests=base_with_tests[0] if base_with_tests else None,
        head=head[0],
        fixed=tuple(sorted(fixed)),
        broken=tuple(sorted(broken)),
        flaky=flaky,
        added=tuple(sorted(set(last) - set(before))) if base else (),
        missing=tuple(sorted(set(before) - set(last))),
        shrank=bool(disappeared) or _has_fewer_passes(base, head),
    )


def _broken_tests(
    before: Statuses,
    after: Statuses,
    last: Collection[str],
    disappeared: Collection[str],
    unstable: Collection[str],
) -> set[str]:
    """Return the tests that always passed at base, and fail or have `disappeared` with the change.

    last: the tests in the whole execution at the change.
    unstable: flaky tests, which may fail by chance. None of them disappears by chance.
    """
    passed = {name for name, statuses in before.items() if _stable(statuses, "passed")}
    failed = {name for name in passed if name in last and _fails(after[name])}
    return (passed & set(disappeared)) | (failed - set(unstable))


def _fixed_tests(before: Statuses, with_tests: Statuses, after: Statuses) -> set[str]:
    """Return the tests that always pass with the change, and failed at base with the tests of
    either commit."""
    return {
        name
        for name, statuses in after.items()
        if _stable(statuses, "passed")
        and (_fails(before.get(name, ())) or _fails(with_tests.get(name, ())))
    }


def needs_rerun(base: CheckExecution, head: CheckExecution) -> tuple[str, ...]:
    """Return the tests that passed at base and fail at head, in the order of their ids.

    They are repeated at both commits before they count as broken. `WHOLE_CHECK` stands for the
    check itself, if it failed without a failed test.
    """
    ids = sorted(passing_tests(base) & failing_tests(head))
    if base.exit_code == 0 and head.exit_code != 0 and not has_failures(head):
        ids.append(WHOLE_CHECK)
    return tuple(ids)


def reproductions_to_confirm(
    base_with_tests: CheckExecution, head: CheckExecution
) -> tuple[str, ...]:
    """Return the tests that failed with the change's tests alone and pass at head.

    A flaky new test may do so once by chance; repeated at both, it shows itself.
    """
    return tuple(sorted(failing_tests(base_with_tests) & passing_tests(head)))


def passing_tests(execution: CheckExecution) -> set[str]:
    """Return the ids of the tests that passed in an execution."""
    return {name for name, status in case_statuses(execution).items() if status == "passed"}


def failing_tests(execution: CheckExecution) -> set[str]:
    """Return the ids of the tests that failed in an execution, or could not be run."""
    return {name for name, status in case_statuses(execution).items() if status in _FAILING}


def case_statuses(execution: CheckExecution) -> dict[str, CaseStatus]:
    """Return the status of each test in one execution; the worst one if it is reported twice."""
    return {name: statuses[0] for name, statuses in statuses_of((execution,)).items()}


def statuses_of(executions: Sequence[CheckExecution]) -> Statuses:
    """Return the statuses of all tests by id, one for each execution that has the test."""
    by_test: dict[str, tuple[CaseStatus, ...]] = {}
    for execution in executions:
        worst: dict[str, CaseStatus] = {}
        for case in execution.cases:
            name = case_id(case)
            other = worst.get(name, case.status)
            worst[name] = min(other, case.status, key=_ORDER.index)
        for name, status in worst.items():
            by_test[name] = (*by_test.get(name, ()), status)
    return by_test


def has_failures(execution: CheckExecution) -> bool:
    """Return True if a test failed in the execution."""
    return any(case.has_failed for case in execution.cases)


def _stable(statuses: Collection[CaseStatus], expected: CaseStatus) -> bool:
    return bool(statuses) and all(status == expected for status in statuses)


def _fails(statuses: Collection[CaseStatus]) -> bool:
    return bool(statuses) and all(status in _FAILING for status in statuses)


def case_id(case: CaseResult) -> str:
    """Return the test's id without addresses."""
    return _ADDRESS.sub("0x", case.id)


def _ids_in(executions: Sequence[CheckExecution], files: Collection[str]) -> set[str]:
    cases = chain.from_iterable(execution.cases for execution in executions)
    return {case_id(case) for case in cases if is_in_files(case, files)}


def is_in_files(case: CaseResult, files: Collection[str]) -> bool:
    """Return True if the test is in one of the files, as far as its report says where it is."""
    if case.file in files or case.id.partition("::")[0] in files:
        return True
    if case.file or not files:
        return False
    words = set(re.split(r"\W+", case.id))
    return any(PurePosixPath(path).stem in words for path in files)


def _flaky(*commits: Statuses) -> tuple[FlakyCase, ...]:
    """Return the tests that passed and failed at one of the commits, with the counts of both."""
    found = []
    for name in sorted({*chain.from_iterable(commits)}):
        mixed = [commit.get(name, ()) for commit in commits]
        mixed = [
            statuses
            for statuses in mixed
            if "passed" in statuses and any(status in _FAILING for status in statuses)
        ]
        if mixed:
            all_seen = [*chain.from_iterable(mixed)]
            failed = sum(status in _FAILING for status in all_seen)
            found.append(FlakyCase(id=name, passed=all_seen.count("passed"), failed=failed))
    return tuple(found)


def _flaky_check(check: ProjectCheck, *commits: Sequence[CheckExecution]) -> tuple[FlakyCase, ...]:
    """Return the check itself if it has no report and its exit code differs at one commit."""
    passed = failed = 0
    for executions in commits:
        codes = [execution.exit_code == 0 for execution in executions]
        if any(codes) and not all(codes) and not any(execution.cases for execution in executions):
            passed, failed = passed + codes.count(True), failed + codes.count(False)
    return (FlakyCase(id=check.name, passed=passed, failed=failed),) if failed else ()


def _broken_check(
    check: ProjectCheck, base: Sequence[CheckExecution], head: Sequence[CheckExecution]
) -> set[str]:
    """Return the check's name if it passed at base and fails at head without a failed test."""
    passed = bool(base) and all(execution.exit_code == 0 for execution in base)
    fails = all(
        execution.exit_code not in (0, None) and not has_failures(execution) for execution in head
    )
    return {check.name} if passed and fails else set()


def _fixed_check(
    check: ProjectCheck, reference: Sequence[CheckExecution], head: Sequence[CheckExecution]
) -> set[str]:
    """Return the check's name if it has no report, failed before and passes at head."""
    if any(execution.cases for execution in (*reference, *head)):
        return set()
    failed = bool(reference) and all(
        execution.exit_code not in (0, None) for execution in reference
    )
    return {check.name} if failed and all(execution.exit_code == 0 for execution in head) else set()


def _has_fewer_passes(base: Sequence[CheckExecution], head: Sequence[CheckExecution]) -> bool:
    """Return True if a check without a report passed at both and names fewer passes at head.

    Code that ends the test's process with 0 is seen by what is then missing from the output.
    """
    if not base or base[0].exit_code != 0 or head[0].exit_code != 0:
        return False
    if base[0].cases or head[0].cases:
        return False
    old, new = base[0].output, head[0].output
    if max(len(old), len(new)) > COMPARED_OUTPUT:
        return bool(old) and not new
    return bool(_passes(old) - _passes(new)) or (bool(old.strip()) and not new.strip())


def _passes(output: str) -> Counter[str]:
    """Count the lines that say that something passed, without numbers and temporary names."""
    lines = (_VARIABLE.sub("?", line) for line in output.splitlines() if _PROGRESS.search(line))
    return Counter(" ".join(line.split()) for line in lines)
