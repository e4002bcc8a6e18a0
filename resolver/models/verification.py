"""Values of the verification: a project's checks, how they ended at both commits, the verdict.

`resolver.verification` computes them from commands that Resolver itself executed in sandboxes of
its own, in which the agent never worked.
"""

from typing import Literal

from pydantic import Field

from resolver.errors import SetupFailureReason
from resolver.models.base import FrozenModel, LoggedModel

CaseStatus = Literal["passed", "failed", "error", "skipped"]
"""The result of a test case.

- failed: an assertion of the test did not hold.
- error: the test could not be run, because of its own import, syntax, fixtures or set-up. Some
  runners report every exception in a test as an error, too.
- skipped: the runner left it out, or expected it to fail.
"""

TreeName = Literal["base", "base_with_tests", "head", "head_with_base_tests"]
"""A tree that checks are executed on.

- base: the base commit.
- base_with_tests: the base with the change's test files and test configuration.
- head: the change.
- head_with_base_tests: the change with the base's test files and test configuration.
"""

ReportFormat = Literal["junit", "go-json", "cargo", "jest-json"]
"""The format of a test report.

- junit: JUnit XML, https://github.com/testmoapp/junitxml
- go-json: the lines of `go test -json`, https://pkg.go.dev/cmd/test2json
- cargo: the text that `cargo test` prints
- jest-json: the file of `jest --json --outputFile`
"""

WORST_FIRST: tuple[CaseStatus, ...] = ("failed", "error", "passed", "skipped")
"""If a report has several results of one test, the first status in this order is the test's."""

MAX_MESSAGE = 2_000
"""Maximum number of characters of a failed test's message."""


class CaseResult(LoggedModel):
    """The result of one test case."""

    id: str = Field(
        description="Name of the test in its suite, the same at base and at head, for example "
        "`tests/test_bill.py::test_total[eur]`."
    )
    status: CaseStatus = Field(description="How it ended.")
    message: str = Field(default="", description="The failure's text.")
    file: str | None = Field(
        default=None, description="The test's file, relative to the repository; null if unknown."
    )

    @property
    def has_failed(self) -> bool:
        """True if an assertion failed, or the test could not be run."""
        return self.status in {"failed", "error"}


class CheckService(FrozenModel):
    """A service that runs alongside the sandbox while a check is executed, such as a database.

    name: its host name. In the sandbox it resolves to the loopback address, as `localhost` does.
    image: reference of its image, with a registry and a tag or digest.
    environment: its variables. No value is a secret.
    ports: the TCP ports that it must listen on before the check starts; empty for those that its
        image declares.
    command: arguments that replace those of the image; empty for the image's.
    """

    name: str
    image: str
    environment: dict[str, str] = Field(default_factory=dict)
    ports: tuple[int, ...] = ()
    command: tuple[str, ...] = ()


class ProjectCheck(FrozenModel):
    """A command of the project that shows whether its code works.

    command: the shell command, executed in the root of the repository.
    narrowed: the same command for some of its tests, with `{files}` for their files; None if
        it can't be narrowed.
    folder: folder that the command enters, to which `{files}` are relative; "" for the root.
    runner: the test runner that the command starts, for example "pytest", "jest" or "go"; None if
        it is unknown.
    timeout_seconds: maximum duration of one execution; None for the operator's limit.
    paths: globs; the check is relevant if a changed file matches one. Empty for every change.
    report: glob of the report files, relative to the repository's root or absolute; None if the
        report is the command's output, or if there is none.
    report_format: None if there is no report, so that only the exit code counts.
    environment: variables that the command is executed with, in addition to the sandbox's.
    files: texts of files that are in the tree while the command is executed, by path.
    services: the services that are started for the check.
    origin: where the check was found, for a person: "`checks:` in .github/resolver.yml",
        "`scripts.test` in package.json".
    """

    name: str
    command: str
    narrowed: str | None = None
    folder: str = ""
    runner: str | None = None
    timeout_seconds: float | None = None
    paths: tuple[str, ...] = ()
    report: str | None = None
    report_format: ReportFormat | None = None
    environment: dict[str, str] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)
    services: tuple[CheckService, ...] = ()
    origin: str = ""


class OmittedCheck(LoggedModel):
    """A check of the project that can't be executed here."""

    name: str = Field(description="Name of the check.")
    command: str = Field(description="Its command.")
    reason: str = Field(description="Why it was not executed, for a person.")


class CheckExecution(LoggedModel):
    """One execution of a check in a fresh sandbox."""

    exit_code: int | None = Field(
        default=None,
        description="Its exit code; missing if the command was ended at its time limit.",
    )
    seconds: float = Field(description="Its duration.")
    cases: tuple[CaseResult, ...] = Field(
        default=(), description="Results of its tests; empty if the runner reports none."
    )
    output: str = Field(default="", repr=False, description="The end of its output.")
    report_complete: bool = Field(
        default=True,
        description="False if a report was expected and is missing, truncated or unreadable.",
    )

    @property
    def statuses(self) -> dict[str, CaseStatus]:
        """The status of each test by its id; the worst one if it is reported twice."""
        worst: dict[str, CaseStatus] = {}
        for case in self.cases:
            known = worst.get(case.id, case.status)
            worst[case.id] = min(known, case.status, key=WORST_FIRST.index)
        return worst

    @property
    def passed(self) -> set[str]:
        """The ids of the tests that passed."""
        return {test for test, status in self.statuses.items() if status == "passed"}

    @property
    def failed(self) -> set[str]:
        """The ids of the tests that failed, or could not be run."""
        return {case.id for case in self.cases if case.has_failed}

    def count(self, *statuses: CaseStatus) -> int:
        """Return the number of test cases with one of these results."""
        return sum(case.status in statuses for case in self.cases)


class FlakyCase(LoggedModel):
    """A test that passed in some executions of the same commit and failed in others."""

    id: str = Field(description="Name of the test.")
    passed: int = Field(description="Number of executions in which it passed.")
    failed: int = Field(description="Number of executions in which it failed.")


Scope = Literal["affected", "full"]
"""affected: only the tests that the change affects were run. full: the whole check."""


class CheckComparison(FrozenModel):
    """A check at the trees of a change.

    head_with_base_tests: the change with the tests of the base; None if it has them anyway.
    base_with_tests: the base with the tests of the change; None if the change has none, or if they
        were not executed there.
    reproduction: tests that ran and failed at the base with the tests of the change, or at the base
        if the change has none, and pass with the change, each time at both.
    useless: new tests that pass at the base, too. not_run: new tests that could not be run there.
    broken: tests that passed at the base and fail with the change, in every repetition. The name of
        the check, if its exit code says that it fails and no test explains it.
    missing: tests that ran at the base and did not run with the change.
    former: tests of the base that are broken or missing with the change, and that the change has
        altered or deleted, so that they expect the former behavior.
    failing: tests that fail with the change, in every repetition, and don't exist at the base.
    known: tests that fail with the change and at the base.
    added: tests that exist only in the change.
    hides_failures: True if a test that must fail is reported so without the code of the change, and
        not with it.
    """

    name: str
    command: str
    scope: Scope
    base: CheckExecution | None
    base_with_tests: CheckExecution | None = None
    head: CheckExecution
    head_with_base_tests: CheckExecution | None = None
    reproduction: tuple[str, ...] = ()
    useless: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    former: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    flaky: tuple[FlakyCase, ...] = ()
    added: tuple[str, ...] = ()
    hides_failures: bool = False


ReviewKind = Literal["manifest", "setup", "inline_tests", "doctests", "tests_only"]
"""Why a person must look at a change that nothing speaks against.

- manifest: a file that also configures tests is changed outside its dependencies and its version.
- setup: the project's set-up is changed, which may install another test runner.
- inline_tests: tests inside of a source file are changed, which trees can't tell from its code.
- doctests: tests in the documentation of a source file are changed, and were executed.
- tests_only: the change touches nothing but tests.
"""


class ReviewPoint(LoggedModel):
    """A part of a change that no execution shows to be right, so that a person must look at it."""

    kind: ReviewKind = Field(description="What it is.")
    path: str | None = Field(default=None, description="The changed file; null for all tests.")


class ChangedExpectation(FrozenModel):
    """A part of a test file, without the change (`old`) and with it (`new`)."""

    path: str
    old: str
    new: str


VerificationVerdict = Literal["verified", "checked", "not_verified", "no_checks"]
"""verified: a test fails without the change and passes with it, and no check found a regression.
checked: no check found a regression, and no test shows the problem, or a person must look at a part
of the change. not_verified: neither, for the reason given. no_checks: the project has no checks."""

VerificationReason = Literal[
    "disabled",
    "no_change",
    "omitted",
    "environment",
    "head_failed_to_run",
    "regression",
    "missing_tests",
    "former_behavior",
    "failing_tests",
    "unreliable_report",
    "time_limit",
    "sandbox_error",
    "unfinished",
    "base_failed_to_run",
    "failed_at_both",
]
"""Why a change is not verified.

environment: the change alters dependencies or the set-up, and no environment could be prepared
    that fits it.
head_failed_to_run: no test ran with the change, although tests ran at the base.
former_behavior: tests of the base fail with the change, which has altered or deleted them. A person
    decides which of the two is right.
failing_tests: tests that the change adds fail with it.
unreliable_report: the report with the change is incomplete, or it contradicts the exit code.
failed_at_both: the checks fail with and without the change, and say nothing about single tests.
"""


Remedy = Literal["setup", "image", "egress"]
"""What gives a project the environment that its tests need.

- setup: commands that install what the project depends on.
- image: an image that has the program.
- egress: hosts that the sandbox may reach.
"""


class MissingEnvironment(LoggedModel):
    """What the environment of a check lacks, so that none of its tests ran."""

    line: str = Field(description="The line of the output that says it.")
    remedy: Remedy = Field(description="What would give it.")
    suggestion: str | None = Field(
        default=None, description="The usual set-up of such a project, which was not executed."
    )
    text: str = Field(default="", description="What to do about it, as comments say it.")


class UnpreparedEnvironment(LoggedModel):
    """Why no environment could be prepared for a change that needs another than its base commit.

    cause: "image" if only a new image would fit the change, and images are not made from what a
    change says; "no_setup" if nothing says how the dependencies are installed;
    "shared_files" if sandboxes of the machine can change each other's programs.
    """

    paths: tuple[str, ...] = Field(description="Changed files that alter the environment.")
    cause: Literal["no_setup", "image", "setup_unreadable", SetupFailureReason] = Field(
        description="What prevents it."
    )
    detail: str = Field(default="", description="The message, or the end of the set-up's output.")


class Verification(FrozenModel):
    """The evidence on a change from Resolver's own executions of the project's checks.

    review: why the change is at most checked.
    expectations: how the change alters the tests that expect the former behavior.
    unprepared: given if the reason is "environment".
    lacks: why no test ran without the change, if the output says it.
    """

    verdict: VerificationVerdict
    reason: VerificationReason | None = None
    checks: tuple[CheckComparison, ...] = ()
    omitted: tuple[OmittedCheck, ...] = ()
    review: tuple[ReviewPoint, ...] = ()
    expectations: tuple[ChangedExpectation, ...] = ()
    unprepared: UnpreparedEnvironment | None = None
    lacks: MissingEnvironment | None = None

    @property
    def is_ready(self) -> bool:
        """True if the change is ready for review."""
        return self.verdict in {"verified", "checked"}

    @property
    def breaks_checks(self) -> bool:
        """True if checks that ran without the change fail or don't run with it."""
        return self.reason in {
            "regression", "missing_tests", "failing_tests", "head_failed_to_run"
        }  # fmt: skip

    @property
    def reproduction(self) -> tuple[str, ...]:
        """Tests that ran and failed without the change, and pass with it."""
        return tuple(sorted({name for check in self.checks for name in check.reproduction}))

    def evidence(self) -> "VerificationEvidence":
        """Return the form that outcome.json and the event log hold."""
        return VerificationEvidence(
            verdict=self.verdict,
            reason=self.reason,
            reproduction=self.reproduction,
            checks=tuple(_evidence_of(check) for check in self.checks),
            review=self.review,
            lacks=self.lacks,
        )


DISABLED = Verification(verdict="not_verified", reason="disabled")
"""The verification of a run that verifies nothing."""

UNFINISHED = Verification(verdict="not_verified", reason="unfinished")
"""The verification of a run that ended before its change was verified."""


class CheckTotals(LoggedModel):
    """The result of one execution of a check, without the single tests."""

    exit_code: int | None = Field(
        default=None, description="Its exit code; null at its time limit."
    )
    passed: int = Field(description="Number of passed tests.")
    failed: int = Field(description="Number of failed tests, with those that could not be run.")
    skipped: int = Field(description="Number of skipped tests.")
    seconds: float = Field(description="Its duration.")


class CheckEvidence(LoggedModel):
    """A check at the base commit and at the change."""

    name: str = Field(description="Name of the check.")
    command: str = Field(description="Its command.")
    base: CheckTotals | None = Field(
        default=None, description="At the base commit; null if it was not executed."
    )
    head: CheckTotals = Field(description="At the change.")
    broken: tuple[str, ...] = Field(
        description="Tests that passed at the base and fail with the change."
    )
    missing: tuple[str, ...] = Field(
        description="Tests that ran at the base and did not run with the change."
    )
    former: tuple[str, ...] = Field(
        description="Those of the broken and missing tests that the change has altered or deleted."
    )
    failing: tuple[str, ...] = Field(description="New tests that fail with the change.")
    known: tuple[str, ...] = Field(
        description="Tests that fail with the change and at the base; they don't count."
    )
    flaky: tuple[FlakyCase, ...] = Field(description="Tests that both passed and failed.")


class VerificationEvidence(LoggedModel):
    """The result of a verification, in the stable form of `evidence` in outcome.json."""

    verdict: VerificationVerdict = Field(description="The result.")
    reason: VerificationReason | None = Field(
        default=None, description="Why the change is not verified; null for another verdict."
    )
    reproduction: tuple[str, ...] = Field(
        description="Tests that failed without the fix and pass with it."
    )
    checks: tuple[CheckEvidence, ...] = Field(description="The checks that were executed.")
    review: tuple[ReviewPoint, ...] = Field(
        description="Parts of the change that a person must look at."
    )
    lacks: MissingEnvironment | None = Field(
        default=None, description="Why no test ran without the change, if the output says it."
    )


def totals_of(execution: CheckExecution) -> CheckTotals:
    """Return the totals of an execution."""
    return CheckTotals(
        exit_code=execution.exit_code,
        passed=execution.count("passed"),
        failed=execution.count("failed", "error"),
        skipped=execution.count("skipped"),
        seconds=round(execution.seconds, 3),
    )


def _evidence_of(check: CheckComparison) -> CheckEvidence:
    return CheckEvidence(
        name=check.name,
        command=check.command,
        base=totals_of(check.base) if check.base else None,
        head=totals_of(check.head),
        broken=check.broken,
        missing=check.missing,
        former=check.former,
        failing=check.failing,
        known=check.known,
        flaky=check.flaky,
    )
