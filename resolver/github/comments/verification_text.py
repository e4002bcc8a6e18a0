"""Prepares the verification of a change for the templates of comments and pull requests.

Names of tests, commands and outputs come out of sandboxes, so all of them are escaped here.
"""

import html
import re
from collections.abc import Sequence
from typing import Any

from resolver.github.comments.report import Report
from resolver.github.text.markdown import code_span, fence, shorten_text, single_line, visible
from resolver.models.truncate import keep_last_lines
from resolver.models.verification import (
    UNFINISHED,
    CheckComparison,
    CheckExecution,
    TamperingFinding,
    UnpreparedEnvironment,
    Verification,
    totals_of,
)
from resolver.trace.plain import duration

_PAGE = re.compile(r"https?://[^\s<>()]+")

MAX_NAMES = 10
"""Maximum number of tests that are named in one list."""

MAX_CHECKS = 10
"""Maximum number of rows in the table of checks."""


def verification_values(report: Report, output_limit: int) -> dict[str, Any] | None:
    """Return the template values of the verification; None if there was nothing to verify.

    output_limit: number of characters of a failing check's output that are shown.
    """
    verification = report.verification or (UNFINISHED if report.patch else None)
    if verification is None or verification.reason == "no_change":
        return None
    checks = verification.checks
    head = report.patch.commit or "" if report.patch else ""
    # The page of a commit in a fork is known by the publication only.
    head_url = "" if report.publication.repository else report.repository_url
    return {
        "verdict": verification.verdict,
        "reason": verification.reason,
        "reproduction": _names(verification.reproduction),
        "broken": _names([name for check in checks for name in check.broken]),
        "flaky": [_flaky(check) for check in checks if check.flaky],
        "missing": _names([name for check in checks if check.shrank for name in check.missing]),
        "proves_nothing": _names(verification.proves_nothing),
        "broken_tests": _names(verification.broken_tests),
        "tampering": [_tampering(each) for each in verification.tampering[:MAX_NAMES]],
        "tampering_left_out": max(0, len(verification.tampering) - MAX_NAMES),
        "omitted": [_omitted(each.command, each.reason) for each in verification.omitted[:10]],
        "unprepared": _unprepared(verification.unprepared),
        "rows": [_row(check) for check in checks[:MAX_CHECKS]],
        "rows_left_out": max(0, len(checks) - MAX_CHECKS),
        "is_partial": any(check.scope == "affected" for check in checks),
        "base": _commit(report.base, _commit_page(report.repository_url, report.base)),
        "head": _commit(head, report.publication.commit_url or _commit_page(head_url, head)),
        "outputs": _outputs(verification, output_limit),
    }


def _names(names: Sequence[str]) -> dict[str, Any]:
    """Return the number of tests and the first of their names."""
    unique = list(dict.fromkeys(names))
    shown = [code_span(shorten_text(_one_line(name), 200)) for name in unique[:MAX_NAMES]]
    return {"count": len(unique), "names": shown, "left_out": max(0, len(unique) - MAX_NAMES)}


def _one_line(name: str) -> str:
    """Return a name or a command on one line."""
    return " ".join(name.split())


def _row(check: CheckComparison) -> dict[str, Any]:
    return {
        "command": code_span(shorten_text(_one_line(check.command), 150), in_table=True),
        "base": _result(check.base),
        "head": _result(check.head),
        "fixed": len(check.fixed),
        "broken": len(check.broken),
        "added": len(check.added),
        "skipped": totals_of(check.head).skipped,
        "time": duration(check.head.seconds),
    }


def _result(execution: CheckExecution | None) -> dict[str, Any] | None:
    """Return how an execution ended; None if there was none."""
    if execution is None:
        return None
    totals = totals_of(execution)
    return {
        "exit_code": totals.exit_code,
        "has_tests": bool(execution.cases),
        "passed": totals.passed,
        "failed": totals.failed,
    }


def _flaky(check: CheckComparison) -> dict[str, Any]:
    shown = [
        {
            "id": code_span(shorten_text(_one_line(f.id), 200)),
            "passed": f.passed,
            "failed": f.failed,
        }
        for f in check.flaky[:MAX_NAMES]
    ]
    return {"tests": shown, "left_out": max(0, len(check.flaky) - MAX_NAMES)}


def _tampering(finding: TamperingFinding) -> dict[str, Any]:
    where = f"{finding.path}:{finding.line}" if finding.line else finding.path
    detail = _one_line(finding.detail)
    return {
        "kind": finding.kind,
        "where": code_span(shorten_text(_one_line(where), 200)),
        "detail": code_span(shorten_text(detail, 200)) if detail else "",
    }


def _unprepared(found: UnpreparedEnvironment | None) -> dict[str, Any] | None:
    if found is None:
        return None
    last = (found.detail.strip().splitlines() or ["(nothing)"])[-1]
    return {
        "paths": _names(found.paths),
        "cause": found.cause,
        "detail": code_span(shorten_text(_one_line(last), 300)),
    }


def _omitted(command: str, reason: str) -> dict[str, str]:
    return {
        "command": code_span(shorten_text(_one_line(command), 150)),
        "reason": single_line(reason, 300),
    }


def _commit_page(repository_url: str, commit: str) -> str:
    return f"{repository_url}/commit/{commit}" if repository_url and commit else ""


def _commit(commit: str, url: str) -> str:
    """Return the first digits of a commit, with a link to its page if it has one."""
    label = code_span(commit[:12]) if commit else ""
    return f"[{label}]({url})" if label and _PAGE.fullmatch(url) else label


def _outputs(verification: Verification, limit: int) -> list[dict[str, str]]:
    """Return the outputs of the checks that fail with the change."""
    return [
        {
            "command": html.escape(shorten_text(_one_line(visible(check.command)), 150)),
            "output": fence(keep_last_lines(check.head.output.strip("\n"), limit)),
        }
        for check in verification.checks[:3]
        if check.head.exit_code != 0 and check.head.output.strip()
    ]
