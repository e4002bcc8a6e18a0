"""Prepares the verification of a change, and a model's opinion on it, for the templates of comments
and pull requests.

Names of tests, commands and outputs come out of sandboxes, and the opinion is written by a model,
so all of them are escaped here.
"""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

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
"""Maximum number of checks that are shown."""

MAX_PATH = 300
"""Maximum length of a path that is linked, in characters."""


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
    """One check without the change (`base`) and with it (`head`), and the numbers of tests.

    failed_with_tests: number of tests that failed at the base with the tests of the change.
    """

    command: str
    base: CheckResult | None
    failed_with_tests: int
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
    breaks_checks: bool
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
    expectations: str
    expectations_shown: int
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
    pages = _test_pages(
        checks, _tree_page(report.repository_url, report.base), _tree_page(head_url, head)
    )
    named = partial(_names, places=pages)
    return VerificationTable(
        verdict=verification.verdict,
        reason=verification.reason,
        breaks_checks=verification.breaks_checks,
        reproduction=named(verification.reproduction),
        broken=named([n for check in checks for n in check.broken if n not in check.former]),
        flaky=tuple(_flaky(check) for check in checks if check.flaky),
        missing=named([n for check in checks for n in check.missing if n not in check.former]),
        former=named([name for check in checks for name in check.former]),
        failing=named([name for check in checks for name in check.failing]),
        known=named([name for check in checks for name in check.known]),
        useless=named([name for check in checks for name in check.useless]),
        not_run=named([name for check in checks for name in check.not_run]),
        review=tuple(map(_review, verification.review[:MAX_NAMES])),
        expectations=_expectations(verification.expectations[:MAX_NAMES]),
        expectations_shown=min(MAX_NAMES, len(verification.expectations)),
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


def _names(names: Sequence[str], places: Mapping[str, str] | None = None) -> NamedTests:
    """Return the number of names and the first of them, with links to the places of tests."""
    unique, pages = list(dict.fromkeys(names)), places or {}
    shown = [
        f"[{label}]({pages[name]})" if name in pages else label
        for name in unique[:MAX_NAMES]
        for label in [code_span(shorten_text(_one_line(name), 200))]
    ]
    return NamedTests(len(unique), tuple(shown), max(0, len(unique) - MAX_NAMES))


def _test_pages(
    checks: Sequence[CheckComparison], base_page: str, head_page: str
) -> dict[str, str]:
    """Return the page of each test whose file is known: with the change, else without it.

    A test of the base that was executed with the change is on a page of the base. base_page,
    head_page: addresses of the two trees; "" if they have no page.
    """
    found: dict[str, str] = {}
    for page, executions in (
        (base_page, [check.base for check in checks]),
        (base_page, [check.head_with_base_tests for check in checks]),
        (head_page, [check.head for check in checks]),
    ):
        cases = [case for execution in executions if execution for case in execution.cases]
        for case in cases if _PAGE.fullmatch(page) else []:
            if case.file and len(case.file) <= MAX_PATH:
                found[case.id] = f"{page}/{quote(case.file)}{f'#L{case.line}' if case.line else ''}"
    return found


def _one_line(name: str) -> str:
    """Return a name or a command on one line."""
    return " ".join(name.split())


def _row(check: CheckComparison) -> CheckRow:
    return CheckRow(
        command=code_span(shorten_text(_one_line(check.command), 150), in_table=True),
        base=_result(check.base),
        failed_with_tests=totals_of(check.base_with_tests).failed if check.base_with_tests else 0,
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


def _expectations(parts: Sequence[ChangedExpectation]) -> str:
    """Return parts of tests as a diff in a code block; "" if there are none."""
    lines: list[str] = []
    for part in parts:
        lines.append(f"@@ {shorten_text(_one_line(part.path), 200)} @@")
        for sign, text in (("-", part.old), ("+", part.new)):
            shown = [line for line in text.splitlines() if line.strip()][:MAX_LINES]
            lines += [f"{sign} {shorten_text(line, 100)}" for line in shown]
    return fence("\n".join(lines), "diff") if lines else ""


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


def _tree_page(repository_url: str, commit: str) -> str:
    return f"{repository_url}/blob/{commit}" if repository_url and commit else ""


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
