"""Values of the verification: a project's checks, how they ended at both commits, the verdict.

`resolver.verification` computes them from commands that Resolver itself executed in sandboxes of
its own, in which the agent never worked.
"""

from typing import Literal

from pydantic import Field

from resolver.models.base import FrozenModel

CaseStatus = Literal["passed", "failed", "error", "skipped"]
"""How a test case ended.

- failed: an assertion of the test did not hold.
- error: the test could not be run, because of its own import, syntax, fixtures or set-up.
- skipped: the runner left it out, or expected it to fail.
"""

ReportFormat = Literal["", "junit", "go-json", "cargo", "tap", "trx", "jest-json", "unittest"]
"""The format of a test report; "" if the check has none, so that only its exit code counts.

- junit: JUnit XML, https://github.com/testmoapp/junitxml
- go-json: the lines of `go test -json`, https://pkg.go.dev/cmd/test2json
- cargo: the text that `cargo test` prints
- tap: Test Anything Protocol, https://testanything.org/tap-version-14-specification.html
- trx: Visual Studio's test results, as `dotnet test --logger trx` writes them
- jest-json: the file of `jest --json --outputFile`
- unittest: the text that `python -m unittest -v` prints
"""

MAX_CASES = 50_000
"""Maximum number of test cases that are read from the reports of one check."""

MAX_MESSAGE = 2_000
"""Maximum number of characters of a failed test's message."""


class CaseResult(FrozenModel):
    """The result of one test case.

    id: stable name of the test in its suite, the same at base and at head, for example
        `tests/test_bill.py::test_total[eur]`.
    seconds: how long it ran; None if the report does not say.
    message: the failure's text; "" for a passed test.
    file, line: where the test is, relative to the repository, as far as the report says; "" and 0
        otherwise.
    """

    id: str
    status: CaseStatus
    seconds: float | None = None
    message: str = ""
    file: str = ""
    line: int = 0


class ProjectCheck(FrozenModel):
    """A command of the project that shows whether its code works.

    command: the shell command, executed in the root of the repository.
    runner: the test runner that the command starts, for example "pytest", "jest" or "go"; "" if it
        is unknown.
    timeout_seconds: maximum duration of one execution; None for the operator's limit.
    paths: globs; the check is relevant if a changed file matches one. Empty for every change.
    report: glob of the report files, relative to the repository's root or absolute; "" if the
        report is the command's output, or if there is none.
    environment: variables that the command is executed with, in addition to the sandbox's.
    origin: where the check was found, for a person: "`checks:` in .github/resolver.yml",
        "`scripts.test` in package.json".
    """

    name: str
    command: str
    runner: str = ""
    timeout_seconds: float | None = None
    paths: tuple[str, ...] = ()
    report: str = ""
    report_format: ReportFormat = ""
    environment: dict[str, str] = Field(default_factory=dict)
    origin: str = ""


class OmittedCheck(FrozenModel):
    """A check of the project that can't be executed here, with the reason for a person."""

    name: str
    command: str
    reason: str


class CheckExecution(FrozenModel):
    """One execution of a check in a fresh sandbox.

    exit_code: None if the command was ended at its time limit.
    cases: results by test, empty if the runner reports none.
    output: the end of the command's output.
    report_complete: False if a report was expected and is missing, truncated or unreadable.
    """

    exit_code: int | None
    seconds: float
    cases: tuple[CaseResult, ...] = ()
    output: str = ""
    report_complete: bool = True


class FlakyCase(FrozenModel):
    """A test that passed in some executions of the same commit and failed in others."""

    id: str
    passed: int
    failed: int


Scope = Literal["affected", "full"]
"""affected: only the tests that the change affects were run. full: the whole check."""


class CheckComparison(FrozenModel):
    """A check at the base commit and at the change.

    base_with_tests: the base commit with the change's test files alone applied; None if the change
        has no test files, or if it was not executed.
    fixed: tests that failed at base, or fail with the change's test files applied to base, and pass
        at head.
    broken: tests that passed at base and fail or are gone at head, in every repetition. The name of
        the check, if its exit code says that it fails and no test explains it.
    added: tests that exist only at head. missing: tests that exist only at base.
    shrank: True if head ran fewer tests than base for a reason other than deleted test files that
        the tampering findings list.
    """

    name: str
    command: str
    scope: Scope
    base: CheckExecution | None
    head: CheckExecution
    base_with_tests: CheckExecution | None = None
    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    flaky: tuple[FlakyCase, ...] = ()
    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    shrank: bool = False


TamperingKind = Literal[
    "deleted_test",
    "skipped_test",
    "expected_failure",
    "focused_test",
    "removed_assertion",
    "weakened_assertion",
    "changed_threshold",
    "rewritten_snapshot",
    "changed_test_configuration",
    "changed_workflow",
    "intercepted_runner",
    "early_exit",
    "detects_tests",
    "hard_coded_result",
]
"""How a change can make checks pass without making the code right.

focused_test: a marker such as `.only`, which leaves out all other tests. intercepted_runner: a file
that takes the place of a test runner or is loaded by it, such as `conftest.py` or
`sitecustomize.py`. early_exit: code that ends the process while tests are loaded. detects_tests:
code that behaves differently where it is tested. hard_coded_result: code that answers the input of
a test with the value that the test expects.
"""


class TamperingFinding(FrozenModel):
    """A part of the change that may make checks pass without a fix. line: 1-based, 0 if unknown."""

    kind: TamperingKind
    path: str
    line: int = 0
    detail: str = ""


VerificationVerdict = Literal["verified", "checked", "not_verified"]
"""verified: a reproduction was seen and nothing that ran got worse. checked: nothing that ran got
worse, without a reproduction. not_verified: neither, for the reason given."""

VerificationReason = Literal[
    "",
    "disabled",
    "no_change",
    "no_checks",
    "omitted",
    "failed_at_both",
    "regression",
    "shrunken_suite",
    "tampering",
    "tests_only",
    "base_failed_to_run",
    "head_failed_to_run",
    "unreliable_report",
    "time_limit",
    "unfinished",
    "sandbox_error",
]
"""Why a change is not verified; "" where it is verified or checked.

unreliable_report: the report at head is incomplete, or it contradicts the exit code.
"""


class Verification(FrozenModel):
    """What Resolver's own executions of the project's checks show about a change.

    reproduction: tests that Resolver saw fail at base, with the change's new test files alone
        applied, and pass at head.
    proves_nothing: new tests that pass at base too.
    broken_tests: new tests that fail at base because of an error of the test itself.
    """

    verdict: VerificationVerdict
    reason: VerificationReason = ""
    reproduction: tuple[str, ...] = ()
    proves_nothing: tuple[str, ...] = ()
    broken_tests: tuple[str, ...] = ()
    checks: tuple[CheckComparison, ...] = ()
    omitted: tuple[OmittedCheck, ...] = ()
    tampering: tuple[TamperingFinding, ...] = ()
