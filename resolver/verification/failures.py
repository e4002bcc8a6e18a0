"""Prepares the failures that a change causes, for the agent that made it."""

from resolver.models.truncate import keep_last_lines
from resolver.models.verification import (
    CaseResult,
    CheckComparison,
    Verification,
    VerificationReason,
)

FAILED_BY_CHANGE: frozenset[VerificationReason] = frozenset(
    {"regression", "head_failed_to_run", "shrunken_suite"}
)
"""Reasons that the agent can remove by correcting its change."""

MAX_TESTS = 20
"""Maximum number of failing tests whose messages the agent gets."""

MAX_OUTPUT = 3_000
"""Number of characters of a check's output that the agent gets."""


def failing_checks(verification: Verification) -> dict[str, object]:
    """Return the template values about the checks that the change breaks."""
    checks = [_values(check) for check in verification.checks if _fails(check)]
    return {"reason": verification.reason, "checks": checks}


def _fails(check: CheckComparison) -> bool:
    return bool(check.broken) or check.shrank or check.head.exit_code != 0


def _values(check: CheckComparison) -> dict[str, object]:
    failed = {case.id: case for case in check.head.cases if case.has_failed}
    chosen = [name for name in check.broken if name in failed] or list(failed)
    return {
        "command": check.command,
        "exit_code": check.head.exit_code,
        "broken": check.broken[:MAX_TESTS],
        "broken_left_out": max(0, len(check.broken) - MAX_TESTS),
        "missing": check.missing[:MAX_TESTS] if check.shrank else (),
        "tests": [_case(failed[name]) for name in chosen[:MAX_TESTS]],
        "output": keep_last_lines(check.head.output, MAX_OUTPUT),
    }


def _case(case: CaseResult) -> dict[str, str]:
    return {"id": case.id, "message": keep_last_lines(case.message, 500)}
