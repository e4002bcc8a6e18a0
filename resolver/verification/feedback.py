"""Prepares the failures that a change causes, for the agent that made it.

They are failing checks, or a set-up that fails on the files of the change, so that no check could
be executed.
"""

from dataclasses import dataclass

from resolver.models.truncate import keep_last_lines
from resolver.models.verification import (
    CaseResult,
    CheckComparison,
    Verification,
    VerificationReason,
)

FAILED_BY_CHANGE: frozenset[VerificationReason] = frozenset(
    {"regression", "head_failed_to_run", "missing_tests", "failing_tests"}
)
"""Reasons that the agent can remove by correcting its change."""

_FAILED_SETUP = frozenset({"setup_failed", "setup_timeout", "setup_unreadable"})
"""Causes of an environment that is not prepared which the agent can remove in the same way."""

MAX_TESTS = 20
"""Maximum number of failing tests whose messages the agent gets."""

MAX_OUTPUT = 3_000
"""Number of characters of a check's output that the agent gets."""


@dataclass(frozen=True)
class FailingTest:
    """A test that fails with the change. message: the end of its failure message."""

    id: str
    message: str


@dataclass(frozen=True)
class FailingCheck:
    """A check that the change breaks.

    exit_code: its exit code with the change; None if it did not end in time.
    broken: ids of tests that passed before and fail now; broken_left_out: number of further ones.
    failing: ids of new tests that fail.
    missing: ids of tests that ran before and do not run now.
    tests: the failing tests whose messages are shown.
    output: the end of its output with the change.
    """

    command: str
    exit_code: int | None
    broken: tuple[str, ...]
    broken_left_out: int
    failing: tuple[str, ...]
    missing: tuple[str, ...]
    tests: tuple[FailingTest, ...]
    output: str


@dataclass(frozen=True)
class FailingSetup:
    """The project's set-up, which fails on the files of the change.

    paths: changed files that alter the environment.
    output: the end of its output.
    """

    cause: str
    paths: tuple[str, ...]
    output: str


@dataclass(frozen=True)
class ChecksFailed:
    """The report to the agent on checks, or on a set-up, that its change breaks."""

    reason: VerificationReason
    checks: tuple[FailingCheck, ...]
    setup: FailingSetup | None


def can_be_corrected(verification: Verification) -> bool:
    """Return True if the agent can remove the reason why its change is not verified."""
    if verification.reason == "environment" and verification.unprepared is not None:
        return verification.unprepared.cause in _FAILED_SETUP
    return verification.reason in FAILED_BY_CHANGE


def failing_checks(verification: Verification) -> ChecksFailed:
    """Return the checks, or the set-up, that the change breaks."""
    failing = (check for check in verification.checks if _fails(check))
    unprepared = verification.unprepared
    setup = None
    if unprepared is not None:
        output = keep_last_lines(unprepared.detail, MAX_OUTPUT)
        setup = FailingSetup(unprepared.cause, unprepared.paths[:MAX_TESTS], output)
    return ChecksFailed(verification.reason, tuple(map(_failing_check, failing)), setup)


def _fails(check: CheckComparison) -> bool:
    return bool(check.broken or check.missing or check.failing) or check.head.exit_code != 0


def _failing_check(check: CheckComparison) -> FailingCheck:
    failed = {case.id: case for case in check.head.cases if case.has_failed}
    chosen = [name for name in (*check.broken, *check.failing) if name in failed] or list(failed)
    return FailingCheck(
        command=check.command,
        exit_code=check.head.exit_code,
        broken=check.broken[:MAX_TESTS],
        broken_left_out=max(0, len(check.broken) - MAX_TESTS),
        failing=check.failing[:MAX_TESTS],
        missing=check.missing[:MAX_TESTS],
        tests=tuple(_failing_test(failed[name]) for name in chosen[:MAX_TESTS]),
        output=keep_last_lines(check.head.output, MAX_OUTPUT),
    )


def _failing_test(case: CaseResult) -> FailingTest:
    return FailingTest(case.id, keep_last_lines(case.message, 500))
