"""Decides what the executions of a project's checks show about a change.

What is trusted, and why:

- The execution at base is trusted. Nothing of the change is in its sandbox, so which tests exist,
  which of them passed and what the exit code was can't be influenced by the change.
- The executions at head, and at base with the change's test files, are not trusted. Code of the
  change runs in them, and may write any report and end with any exit code.
- The change itself, as a tree that Resolver read, is trusted: which files it touches, and what the
  tampering findings say about their text.

So a good result at head counts only as far as the base supports it. Each test that ran at base must
be in head's report; the report must be complete and agree with the exit code; and the change must
not touch what stands between the code and the report (test configuration, files that take the
runner's place, code that ends the process or asks whether it is tested) or make the existing tests
weaker. Any such finding means that the results at head prove nothing, so it is never `verified` nor
`checked`. The cost is that an honest change to a test's expected value waits for a reviewer.

A reproduction rests on a test that the change brought, so it shows no more than that this test
tells base from head. A test that contributes nothing to a review passes this rule; a person reads
it in the pull request. The rest of the verdict doesn't depend on it.

When a failure at base is a reproduction: the test itself ran, its status is `failed`, and the same
test passes at head. An `ImportError` or `AttributeError` inside of the test, because the production
code lacks a new function, is a fair failure: the test's file was loaded and the test started. If
the file could not be loaded, as for an import at its top or a compiler's error, it did not run,
and nothing was seen. Some reports (Surefire, unittest) call any exception other than an assertion
an error; such a test counts if its message shows an exception of the code and not of loading or
setting up. A check without a report counts by its exit code, if its output doesn't show that the
tests could not be built or loaded.
"""

import re
from collections.abc import Sequence

from resolver.models.test_files import is_test_file
from resolver.models.verification import (
    CaseResult,
    CheckComparison,
    CheckExecution,
    OmittedCheck,
    TamperingFinding,
    Verification,
    VerificationReason,
)
from resolver.verification.comparison import (
    case_id,
    case_statuses,
    failing_tests,
    has_failures,
    passing_tests,
)
from resolver.verification.project_files import is_test_configuration

_NOT_STARTED = frozenset({124, 126, 127, 130, 137, 139, 143})
"""Exit codes, set by a shell or by a signal, of a command that did not start or was ended."""

_NO_TESTS = re.compile(r"\bno tests (?:ran|found)\b|\bcollected 0 items\b", re.IGNORECASE)
"""Matches the output of runners whose exit code is not 0 because there are no tests."""

_NOT_LOADED = re.compile(
    r"Test suite failed to run|_FailedTest\b|^ERROR collecting|error during collection"
    r"|ImportError while (?:import|load)|\[(?:build|setup) failed\]",
    re.MULTILINE,
)
"""Matches messages of a test whose file could not be loaded."""

_OWN_ERROR = re.compile(
    r"failed on (?:setup|teardown)|fixture '[^'\n]{1,100}' not found|\bSyntaxError\b"
    r"|\bIndentationError\b|\bImportError\b|\bModuleNotFoundError\b|Cannot find module"
    r"|NoClassDefFoundError|ClassNotFoundException|NoSuchMethodError|initializationError"
    r"|Unresolved compilation|cannot find symbol"
)
"""Matches messages of a test with status `error` that could not be run."""

_NOT_BUILT = re.compile(
    r"\berror: |\berror\[E\d+\]|undefined reference|undefined: |cannot find symbol"
    r"|could not compile"
    r"|COMPILATION ERROR|\bSyntaxError\b|\bIndentationError\b|\bModuleNotFoundError\b"
    r"|\bImportError\b"
    r"|Cannot find module|No rule to make target|command not found|No such file or directory"
    r"|syntax error|\[(?:build|setup) failed\]|error TS\d+"
)
"""Matches outputs of a check without a report whose tests could not be built or loaded."""

_PROSE = re.compile(
    r"(?:.*/)?(?:[^/]*\.(?:md|rst|adoc|txt)|(?:CHANGELOG|CHANGES|NEWS|README|AUTHORS)[^/]*)"
    r"|docs?/.*",
    re.IGNORECASE,
)
"""Matches files that no test depends on."""

_BUILD_PROSE = re.compile(r"(?:.*/)?(?:CMakeLists|requirements[^/]*|constraints[^/]*)\.txt")


def decide(
    checks: Sequence[CheckComparison],
    *,
    changed_files: Sequence[str],
    omitted: Sequence[OmittedCheck] = (),
    tampering: Sequence[TamperingFinding] = (),
    obstacle: VerificationReason = "",
) -> Verification:
    """Return the verdict about a change.

    checks: the comparisons of the checks that were executed.
    changed_files: paths of the files that the change adds, modifies or deletes.
    obstacle: why the verification could not be finished: "disabled", "sandbox_error",
        "environment", "time_limit" or "unfinished". A regression or a tampering finding that was
        seen until then is the reason in its place.
    """
    reproduction = tuple(sorted({name for check in checks for name in _reproduction(check)}))
    useless = {name for check in checks for name in _passing_without_fix(check)}
    not_run = {name for check in checks for name in _not_run_without_fix(check)}
    reason = _reason_against(checks, changed_files, omitted, tampering, obstacle)
    if not reason and not reproduction and not any(map(_passed, checks)):
        reason = "failed_at_both"
    return Verification(
        verdict="not_verified" if reason else "verified" if reproduction else "checked",
        reason=reason,
        reproduction=reproduction,
        proves_nothing=tuple(sorted(useless)),
        broken_tests=tuple(sorted(not_run)),
        checks=tuple(checks),
        omitted=tuple(omitted),
        tampering=tuple(tampering),
    )


def _reason_against(
    checks: Sequence[CheckComparison],
    changed_files: Sequence[str],
    omitted: Sequence[OmittedCheck],
    tampering: Sequence[TamperingFinding],
    obstacle: VerificationReason,
) -> VerificationReason:
    """Return the first reason why the change can be neither verified nor checked; "" for none."""
    if obstacle == "disabled":
        return "disabled"
    if not changed_files:
        return "no_change"
    if any(map(_has_regression, checks)):
        return "regression"
    if tampering:
        return "tampering"
    if all(map(_is_test_or_prose, changed_files)) and any(map(_is_test, changed_files)):
        return "tests_only"
    if any(map(_is_fixed_by_tests, checks)):
        return "tests_only"
    if obstacle:
        return obstacle
    if not checks:
        return "omitted" if omitted else "no_checks"
    for check in checks:
        reason = _doubt(check)
        if reason:
            return reason
    if not any(map(_is_comparable, checks)):
        return _why_not_comparable(checks[0])
    return ""


def _doubt(check: CheckComparison) -> VerificationReason:
    """Return why head's result of a check that ran at base can't be relied on; "" if it can."""
    base, head = check.base, check.head
    if not _is_comparable(check):
        return ""
    assert base is not None
    if head.exit_code is None:
        return "time_limit"
    if head.exit_code in _NOT_STARTED and head.exit_code != base.exit_code:
        return "head_failed_to_run"
    if base.report_complete and not head.report_complete:
        return "unreliable_report"
    if check.shrank or check.broken:
        return "shrunken_suite"
    if _contradicts_itself(head) and not (
        _contradicts_itself(base) and (head.exit_code == 0) == (base.exit_code == 0)
    ):
        return "unreliable_report"
    return "failed_at_both" if _new_failures(check) else ""


def _is_comparable(check: CheckComparison) -> bool:
    """Return True if the check ran at base, so that there is something to compare head with.

    A check that reports tests at head and nothing at base is none, unless base says by itself that
    it has no tests.
    """
    base, head = check.base, check.head
    if base is None or base.exit_code is None or base.exit_code in _NOT_STARTED:
        return False
    if not base.report_complete and (base.cases or head.report_complete):
        return False
    if base.cases or not head.cases:
        return True
    return base.report_complete and (base.exit_code == 0 or bool(_NO_TESTS.search(base.output)))


def _why_not_comparable(check: CheckComparison) -> VerificationReason:
    if check.base is not None and check.base.exit_code is None:
        return "time_limit"
    return "base_failed_to_run"


def _contradicts_itself(execution: CheckExecution) -> bool:
    """Return True if the exit code says that all is well and the report doesn't, or vice versa."""
    return bool(execution.cases) and (execution.exit_code == 0) == has_failures(execution)


def _has_regression(check: CheckComparison) -> bool:
    """Return True if a test that passed at base fails at head, or the check without a test does."""
    return check.name in check.broken or not failing_tests(check.head).isdisjoint(check.broken)


def _new_failures(check: CheckComparison) -> set[str]:
    """Return the tests that fail at head and did not fail at base, and are not flaky."""
    assert check.base is not None
    failing, known = failing_tests(check.head), failing_tests(check.base)
    return failing - known - {case.id for case in check.flaky}


def _reproduction(check: CheckComparison) -> tuple[str, ...]:
    """Return the tests that ran and failed without the fix, and pass with it."""
    reference = check.base_with_tests or check.base
    if reference is None or not _is_comparable(check) or reference.exit_code is None:
        return ()
    if not reference.cases:
        by_exit_code = check.name in check.fixed and not check.head.cases
        return (check.name,) if by_exit_code and _failed_by_itself(reference) else ()
    if not reference.report_complete or reference.exit_code == 0:
        return ()
    failing = _failing_cases(reference)
    return tuple(
        name for name in check.fixed if name in failing and all(map(_ran_and_failed, failing[name]))
    )


def _failing_cases(execution: CheckExecution) -> dict[str, list[CaseResult]]:
    """Return the failing results by the id that the comparison gives them."""
    by_id: dict[str, list[CaseResult]] = {}
    for case in execution.cases:
        if case.has_failed:
            by_id.setdefault(case_id(case), []).append(case)
    return by_id


def _ran_and_failed(case: CaseResult) -> bool:
    """Return True if the test itself started and failed."""
    if _NOT_LOADED.search(case.message) or _NOT_LOADED.search(case.id):
        return False
    return case.status == "failed" or bool(case.message and not _OWN_ERROR.search(case.message))


def _failed_by_itself(execution: CheckExecution) -> bool:
    """Return True if a check without a report ran its tests and one of them failed."""
    started = execution.exit_code not in (None, 0) and execution.exit_code not in _NOT_STARTED
    return started and not _NOT_BUILT.search(execution.output)


def _passing_without_fix(check: CheckComparison) -> set[str]:
    """Return the new tests that pass at base, too."""
    if check.base_with_tests is None or check.base is None:
        return set()
    passing = passing_tests(check.base_with_tests) & passing_tests(check.head)
    return passing - case_statuses(check.base).keys()


def _not_run_without_fix(check: CheckComparison) -> set[str]:
    """Return the new tests that pass at head and could not be run at base."""
    reference = check.base_with_tests
    if reference is None:
        return set()
    before, failing = case_statuses(reference), _failing_cases(reference)
    new = set(check.added) & passing_tests(check.head)
    not_run = {name for name in new if name not in before}
    return not_run | {
        name
        for name in new & set(failing)
        if not any(_ran_and_failed(case) for case in failing[name])
    }


def _is_fixed_by_tests(check: CheckComparison) -> bool:
    """Return True if a test that failed at base passes with the change's test files alone.

    Then the tests explain why it passes at head, not the code.
    """
    if check.base is None or check.base_with_tests is None:
        return False
    explained = failing_tests(check.base) & passing_tests(check.base_with_tests) & set(check.fixed)
    has_report = check.base.cases or check.head.cases or not _is_comparable(check)
    codes = check.base_with_tests.exit_code, check.head.exit_code
    by_exit_code = not has_report and check.base.exit_code != 0 and codes == (0, 0)
    return bool(explained) or by_exit_code


def _passed(check: CheckComparison) -> bool:
    """Return True if the check ran at both commits and passes at head with something to show."""
    if not _is_comparable(check) or check.head.exit_code != 0:
        return False
    return not check.head.cases or bool(passing_tests(check.head))


def _is_test(path: str) -> bool:
    return is_test_file(path) or is_test_configuration(path)


def _is_test_or_prose(path: str) -> bool:
    is_prose = _PROSE.fullmatch(path) and not _BUILD_PROSE.fullmatch(path)
    return _is_test(path) or bool(is_prose)
