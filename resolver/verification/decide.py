"""Decides what the executions of a project's checks show about a change.

What is trusted, and why:

- The execution at the base is trusted. Nothing of the change is in its sandbox, so which tests
  exist, which of them passed and what the exit code was can't be influenced by the change.
- The executions at the other trees are not trusted. Code of the change, or tests of it, run in
  them, and may write any report and end with any exit code.
- The trees are trusted, because Resolver built them. At the change with the tests of the base,
  nothing that the change does to tests, or to what configures their runner, has an effect. The base
  with the tests of the change differs from the change in the code alone.

So a good result with the change counts only as far as the base supports it. Each test that ran at
the base must be in the report with the base's tests and pass there, the report must be complete,
and it must agree with the exit code. What fails at the base too is listed and doesn't count, since
nobody can tell from it whether the change is right.

A test of the base that fails with the change, although the change has altered or deleted that test,
expects the former behavior. Whether the old or the new expectation is right is a decision that no
execution makes, so a person makes it.

A reproduction rests on a test that the change brought, so it shows no more than that this test
tells the code of the base from that of the change. Code that recognizes the input of the test, and
a test that looks at the text of the code, pass this rule; a person reads the test. The rest of the
verdict doesn't depend on it.

When a failure without the code is a reproduction: the test itself ran, failed each time, and passes
with the code each time. An `ImportError` or `AttributeError` inside of the test, because the code
lacks a new function, is a fair failure: the test's file was loaded and the test started. If the
file could not be loaded, as for an import at its top or a compiler's error, it did not run, and
nothing was seen. A check without a report shows no single test, so it is never a reproduction.

Code of the change can also write the report of a reproduction. A test that must fail is executed
beside it (`control.py`): if it is not reported as failed with the code, nothing of this report
counts.

Where a person must look at a part of the change, because it decides how the tests run and is also
needed for the code to work (a manifest), the best verdict is `checked`.
"""

import re
from collections.abc import Sequence
from typing import get_args

from resolver.models.verification import (
    CheckComparison,
    CheckExecution,
    OmittedCheck,
    ReviewPoint,
    Verification,
    VerificationReason,
)

_NOT_STARTED = frozenset({124, 126, 127, 130, 137, 139, 143})
"""Exit codes, set by a shell or by a signal, of a command that did not start or was ended."""

_NO_TESTS = re.compile(r"\bno tests (?:ran|found)\b|\bcollected 0 items\b", re.IGNORECASE)
"""Matches the output of runners whose exit code is not 0 because there are no tests."""

_RANK = {reason: rank for rank, reason in enumerate(get_args(VerificationReason))}
"""The reasons are declared with the worst one first."""


def decide(
    checks: Sequence[CheckComparison],
    *,
    changed_files: Sequence[str],
    omitted: Sequence[OmittedCheck] = (),
    review: Sequence[ReviewPoint] = (),
    obstacle: VerificationReason | None = None,
) -> Verification:
    """Return the verdict about a change.

    checks: the comparisons of the checks that were executed.
    changed_files: paths of the files that the change adds, modifies or deletes.
    review: parts of the change that a person must look at.
    obstacle: why the verification could not be finished: "sandbox_error", "environment",
        "time_limit" or "unfinished". A worse reason that was seen until then takes its place.
    """
    points = tuple(point for point in review if _counts(point, checks))
    found = Verification(
        verdict="not_verified",
        checks=tuple(checks),
        omitted=tuple(omitted),
        review=points,
    )
    reasons = [reason for check in checks for reason in _reasons_against(check)]
    reasons += [obstacle] if obstacle else []
    reasons += [] if changed_files else ["no_change"]
    reason = min(reasons, key=_RANK.__getitem__, default=None)
    if not reason and not checks and not omitted:
        return found.model_copy(update={"verdict": "no_checks"})
    if not reason and not any(map(_shows_something, checks)):
        reason = _why_nothing_was_shown(checks)
    if reason:
        return found.model_copy(update={"reason": reason})
    is_verified = bool(found.reproduction) and not points
    return found.model_copy(update={"verdict": "verified" if is_verified else "checked"})


def _reasons_against(check: CheckComparison) -> list[VerificationReason]:
    """Return what speaks against the change in the results of a check."""
    if not _is_comparable(check):
        return []
    assert check.base is not None
    reasons: list[VerificationReason] = []
    lost = {*check.broken, *check.missing} - set(check.former)
    if lost & set(check.broken):
        reasons.append("regression")
    if set(check.missing) & lost:
        reasons.append("missing_tests")
    if check.former:
        reasons.append("former_behavior")
    if check.failing:
        reasons.append("failing_tests")
    if check.hides_failures:
        reasons.append("unreliable_report")
    reasons += _doubts_about(check.base, check.head)
    if _contradicts_itself(check.head) and not (
        _contradicts_itself(check.base)
        and (check.head.exit_code == 0) == (check.base.exit_code == 0)
    ):
        reasons.append("unreliable_report")
    old = check.head_with_base_tests
    if old is not None and not check.former:
        reasons += _doubts_about(check.base, old)
        # Another exit code may only say that the code lacks the tests of the change.
        reasons += ["unreliable_report"] if old.exit_code == 0 and old.failed else []
    return reasons


def _doubts_about(base: CheckExecution, later: CheckExecution) -> list[VerificationReason]:
    """Return why a result of a check that ran at the base can't be relied on."""
    if later.exit_code is None:
        return ["time_limit"]
    if base.passed and not later.passed and not later.failed:
        return ["head_failed_to_run"]
    if later.exit_code in _NOT_STARTED and later.exit_code != base.exit_code:
        return ["head_failed_to_run"]
    if base.report_complete and not later.report_complete:
        return ["unreliable_report"]
    return []


def _is_comparable(check: CheckComparison) -> bool:
    """Return True if the check ran at the base, so that there is something to compare with.

    A check that reports tests with the change and nothing at the base is none, unless the base says
    by itself that it has no tests.
    """
    base, head = check.base, check.head
    if base is None or base.exit_code is None or base.exit_code in _NOT_STARTED:
        return False
    if not base.report_complete and (base.cases or head.report_complete):
        return False
    if base.cases or not head.cases:
        return True
    return base.report_complete and (base.exit_code == 0 or bool(_NO_TESTS.search(base.output)))


def _shows_something(check: CheckComparison) -> bool:
    """Return True if the check ran at both commits, and passes or has passing tests."""
    if not _is_comparable(check):
        return False
    return bool(check.head.passed) if check.head.cases else check.head.exit_code == 0


def _why_nothing_was_shown(checks: Sequence[CheckComparison]) -> VerificationReason:
    if not checks:
        return "omitted"
    if any(map(_is_comparable, checks)):
        return "failed_at_both"
    base = checks[0].base
    return "time_limit" if base is not None and base.exit_code is None else "base_failed_to_run"


def _contradicts_itself(execution: CheckExecution) -> bool:
    """Return True if the exit code says that all is well and the report doesn't, or vice versa."""
    if not execution.cases or execution.exit_code is None:
        return False
    return (execution.exit_code == 0) == bool(execution.failed)


def _counts(point: ReviewPoint, checks: Sequence[CheckComparison]) -> bool:
    """Return True unless the point is about tests in documentation that no check has executed."""
    if point.kind != "doctests":
        return True
    cases = (case for check in checks for case in check.head.cases)
    path = point.path or ""
    return any(path == case.file or case.id.startswith(path) for case in cases)
