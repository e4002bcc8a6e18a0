"""Prepares the verification of a change, and a model's opinion on it, for the templates of comments
and pull requests.

Names of tests, commands and outputs come out of sandboxes, and the opinion is written by a model,
so all of them are escaped here.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from resolver.github.comments.report import Report
from resolver.github.text.markdown import code_span, fence, shorten_text, single_line, visible
from resolver.models.truncate import keep_last_lines
from resolver.models.verification import (
    UNFINISHED,
    ChangedExpectation,
    CheckComparison,
    CheckExecution,
    MissingEnvironment,
    Remedy,
    ReviewKind,
    ReviewPoint,
    UnpreparedEnvironment,
    Verification,
    VerificationReason,
    VerificationVerdict,
    totals_of,
)
from resolver.trace.plain import duration

_PAGE = re.compile(r"https?://[^\s<>()]+")

MAX_NAMES = 10
"""Maximum number of tests that are named in one list."""

MAX_LINES = 5
"""Maximum number of lines that are shown of one part of a test."""

MAX_CHECKS = 10
"""Maximum number of rows in the table of checks."""


@dataclass(frozen=True)
class NamedTests:
    """Names of tests: the first ones. count: number of all of them."""

    count: int
    names: tuple[str, ...]
    left_out: int


@dataclass(frozen=True)
class CheckResult:
    """The result of an execution of a check.

    exit_code: None if it did not end.
    has_tests: True if it reported the result of each test.
    """

    exit_code: int | None
    has_tests: bool
    passed: int
    failed: int


@dataclass(frozen=True)
class CheckRow:
    """One check without the change (`base`) and with it (`head`), and the numbers of tests."""

    command: str
    base: CheckResult | None
    head: CheckResult | None
    broken: int
    added: int
    skipped: int
    time: str


@dataclass(frozen=True)
class FlakyTest:
    """A flaky test, and how often it passed and failed."""

    id: str
    passed: int
    failed: int


@dataclass(frozen=True)
class FlakyTests:
    """The first flaky tests of a check."""

    tests: tuple[FlakyTest, ...]
    left_out: int


@dataclass(frozen=True)
class ReviewRow:
    """A part of the change that a person must look at. path: "" for all of it."""

    kind: ReviewKind
    path: str


@dataclass(frozen=True)
class ExpectationRow:
    """A part of an old test without the change (`old`) and with it (`new`)."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class OmittedCheckRow:
    """A check that was not executed, and why."""

    command: str
    reason: str


@dataclass(frozen=True)
class UnpreparedSummary:
    """Why there is no environment for the change. paths: changed files that alter it."""

    paths: NamedTests
    cause: str
    detail: str


@dataclass(frozen=True)
class MissingSummary:
    """What the environment lacks. line, suggestion: in code; suggestion is "" for none."""

    line: str
    remedy: Remedy
    suggestion: str


@dataclass(frozen=True)
class FailedCheckOutput:
    """The output of a check that fails. command: escaped as HTML. output: in a code block."""

    command: str
    output: str


@dataclass(frozen=True)
class VerificationTable:
    """The verification of a change.

    The lists of tests are those of `CheckComparison`, of all checks. A test that expects the former
    behavior is in no other one.
    omitted: checks that were not executed.
    rows: one for each check.
    is_partial: True if only the tests that the change affects were executed.
    base, head: links to the commits that were compared.
    outputs: of the checks that fail with the change.
    """

    verdict: VerificationVerdict
    reason: VerificationReason
    reproduction: NamedTests
    broken: NamedTests
    flaky: tuple[FlakyTests, ...]
    missing: NamedTests
    former: NamedTests
    failing: NamedTests
    known: NamedTests
    useless: NamedTests
    not_run: NamedTests
    review: tuple[ReviewRow, ...]
    expectations: tuple[ExpectationRow, ...]
    expectations_left_out: int
    omitted: tuple[OmittedCheckRow, ...]
    unprepared: UnpreparedSummary | None
    lacks: MissingSummary | None
    rows: tuple[CheckRow, ...]
    rows_left_out: int
    is_partial: bool
    base: str
    head: str
    outputs: tuple[FailedCheckOutput, ...]


def tabulate_verification(report: Report, output_limit: int) -> VerificationTable | None:
    """Return the verification as the templates show it; None if there was nothing to verify.

    output_limit: number of characters of a failing check's output that are shown.
    """
    verification = report.verification or (UNFINISHED if report.patch else None)
    if verification is None or verification.reason == "no_change":
        return None
    checks = verification.checks
    head = report.patch.commit or "" if report.patch else ""
    # The page of a commit in a fork is known by the publication only.
    head_url = "" if report.publication.repository else report.repository_url
    return VerificationTable(
        verdict=verification.verdict,
        reason=verification.reason,
        reproduction=_names(verification.reproduction),
        broken=_names([n for check in checks for n in check.broken if n not in check.former]),
        flaky=tuple(_flaky(check) for check in checks if check.flaky),
        missing=_names([n for check in checks for n in check.missing if n not in check.former]),
        former=_names([name for check in checks for name in check.former]),
        failing=_names([name for check in checks for name in check.failing]),
        known=_names([name for check in checks for name in check.known]),
        useless=_names([name for check in checks for name in check.useless]),
        not_run=_names([name for check in checks for name in check.not_run]),
        review=tuple(map(_review, verification.review[:MAX_NAMES])),
        expectations=tuple(map(_expectation, verification.expectations[:MAX_NAMES])),
        expectations_left_out=max(0, len(verification.expectations) - MAX_NAMES),
        omitted=tuple(
            _omitted(omission.command, omission.reason) for omission in verification.omitted[:10]
        ),
        unprepared=_unprepared(verification.unprepared),
        lacks=_missing(verification.lacks),
        rows=tuple(_row(check) for check in checks[:MAX_CHECKS]),
        rows_left_out=max(0, len(checks) - MAX_CHECKS),
        is_partial=any(check.scope == "affected" for check in checks),
        base=_commit(report.base, _commit_page(report.repository_url, report.base)),
        head=_commit(head, report.publication.commit_url or _commit_page(head_url, head)),
        outputs=_outputs(verification, output_limit),
    )


def _names(names: Sequence[str]) -> NamedTests:
    """Return the number of tests and the first of their names."""
    unique = list(dict.fromkeys(names))
    shown = tuple(code_span(shorten_text(_one_line(name), 200)) for name in unique[:MAX_NAMES])
    return NamedTests(len(unique), shown, max(0, len(unique) - MAX_NAMES))


def _one_line(name: str) -> str:
    """Return a name or a command on one line."""
    return " ".join(name.split())


def _row(check: CheckComparison) -> CheckRow:
    return CheckRow(
        command=code_span(shorten_text(_one_line(check.command), 150), in_table=True),
        base=_result(check.base),
        head=_result(check.head),
        broken=len(check.broken),
        added=len(check.added),
        skipped=totals_of(check.head).skipped,
        time=duration(check.head.seconds),
    )


def _result(execution: CheckExecution | None) -> CheckResult | None:
    """Return how an execution ended; None if there was none."""
    if execution is None:
        return None
    totals = totals_of(execution)
    return CheckResult(
        exit_code=totals.exit_code,
        has_tests=bool(execution.cases),
        passed=totals.passed,
        failed=totals.failed,
    )


def _flaky(check: CheckComparison) -> FlakyTests:
    shown = tuple(
        FlakyTest(code_span(shorten_text(_one_line(test.id), 200)), test.passed, test.failed)
        for test in check.flaky[:MAX_NAMES]
    )
    return FlakyTests(shown, max(0, len(check.flaky) - MAX_NAMES))


def _review(point: ReviewPoint) -> ReviewRow:
    path = code_span(shorten_text(_one_line(point.path), 200)) if point.path else ""
    return ReviewRow(kind=point.kind, path=path)


def _expectation(part: ChangedExpectation) -> ExpectationRow:
    old, new = (
        "<br>".join(
            code_span(shorten_text(line.strip(), 100), in_table=True)
            for line in [line for line in text.splitlines() if line.strip()][:MAX_LINES]
        )
        for text in (part.old, part.new)
    )
    path = code_span(shorten_text(_one_line(part.path), 200), in_table=True)
    return ExpectationRow(path=path, old=old, new=new or "*deleted*")


def _unprepared(found: UnpreparedEnvironment | None) -> UnpreparedSummary | None:
    if found is None:
        return None
    last = (found.detail.strip().splitlines() or ["(nothing)"])[-1]
    return UnpreparedSummary(
        paths=_names(found.paths),
        cause=found.cause,
        detail=code_span(shorten_text(_one_line(last), 300)),
    )


def _missing(found: MissingEnvironment | None) -> MissingSummary | None:
    if found is None:
        return None
    return MissingSummary(
        line=code_span(shorten_text(_one_line(found.line), 200)),
        remedy=found.remedy,
        suggestion=found.suggestion and code_span(f"setup: {found.suggestion}"),
    )


def _omitted(command: str, reason: str) -> OmittedCheckRow:
    return OmittedCheckRow(
        command=code_span(shorten_text(_one_line(command), 150)),
        reason=single_line(reason, 300),
    )


def _commit_page(repository_url: str, commit: str) -> str:
    return f"{repository_url}/commit/{commit}" if repository_url and commit else ""


def _commit(commit: str, url: str) -> str:
    """Return the first digits of a commit, with a link to its page if it has one."""
    label = code_span(commit[:12]) if commit else ""
    return f"[{label}]({url})" if label and _PAGE.fullmatch(url) else label


def _outputs(verification: Verification, limit: int) -> tuple[FailedCheckOutput, ...]:
    """Return the outputs of the checks that fail with the change."""
    return tuple(
        FailedCheckOutput(
            command=html.escape(shorten_text(_one_line(visible(check.command)), 150)),
            output=fence(keep_last_lines(check.head.output.strip("\n"), limit)),
        )
        for check in verification.checks[:3]
        if check.head.exit_code != 0 and check.head.output.strip()
    )
