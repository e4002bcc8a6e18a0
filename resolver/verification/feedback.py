"""Prepares the failures that a change causes, for the agent that made it.

They are failing checks, or a set-up that fails on the files of the change, so that no check could
be executed.
"""

from dataclasses import dataclass

from resolver.models.truncate import keep_last_lines
from resolver.models.verification import (
    CaseResult,
    CheckComparison,
    UnpreparedEnvironment,
    Verification,
    VerificationReason,
)

_FAILED_SETUP = frozenset({"setup_failed", "setup_timeout", "setup_unreadable"})
"""Causes of an environment that is not prepared which the agent can remove in the same way."""

MAX_TESTS = 20
"""Maximum number of failing tests whose messages the agent gets."""


@dataclass(frozen=True)
class ChecksFailed:
    """The report to the agent on checks, or on a set-up, that its change breaks.

    checks: the failing checks, each with the failed tests whose messages are shown.
    setup: the project's set-up, which fails on the files of the change.
    """

    reason: VerificationReason | None
    checks: tuple[tuple[CheckComparison, tuple[CaseResult, ...]], ...]
    setup: UnpreparedEnvironment | None


def can_be_corrected(verification: Verification) -> bool:
    """Return True if the agent can remove the reason why its change is not verified."""
    if verification.reason == "environment" and verification.unprepared is not None:
        return verification.unprepared.cause in _FAILED_SETUP
    return verification.breaks_checks


def failing_checks(verification: Verification) -> ChecksFailed:
    """Return the checks, or the set-up, that the change breaks."""
    failing = [
        (check, _shown_tests(check))
        for check in verification.checks
        if check.broken or check.missing or check.failing or check.head.exit_code != 0
    ]
    return ChecksFailed(verification.reason, tuple(failing), verification.unprepared)


def _shown_tests(check: CheckComparison) -> tuple[CaseResult, ...]:
    """Return the tests that newly fail with the ends of their messages; all failing ones if the
    names of none are known."""
    failed = {case.id: case for case in check.head.cases if case.has_failed}
    chosen = [name for name in (*check.broken, *check.failing) if name in failed] or list(failed)
    return tuple(
        failed[name].model_copy(update={"message": keep_last_lines(failed[name].message, 500)})
        for name in chosen[:MAX_TESTS]
    )
