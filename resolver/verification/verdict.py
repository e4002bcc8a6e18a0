"""Determine how a check ended from its command line, exit code and output.

This is the only place that makes this decision.
"""

import re

from resolver.models.check_history import Verdict
from resolver.security.shell.checks import is_test_command, read_checks

TAIL = 4_000
"""Number of characters at the end of an output that are read: test runners summarize there."""

_NOT_THE_CHECK_S = frozenset({124, 126, 127, 130, 137, 143})
"""Exit codes, set by a shell or by `timeout`, of a program that did not start or was
interrupted."""

_MISSING = re.compile(
    r"^(?:.*: )?(?:\S+: )?command not found$|^\S*sh: (?:line \d+: )?cd: "
    r"|No module named '?(?:pytest|unittest2|nose2?|tox|nox|mypy|ruff|flake8|pylint)'?$"
    r"|^npm (?:ERR!|error) Missing script|ERR_PNPM_NO_(?:SCRIPT|IMPORTER)|ERR_PNPM_RECURSIVE_RUN_NO"
    r"|^error: Script not found|^error Command \"[^\"\n]{1,100}\" not found"
    r"|^npm (?:ERR!|error) (?:enoent|code ENOENT)|Couldn't find a script named"
    r"|\*\*\* No rule to make target (?!.*needed by)|\*\*\* No targets specified and no makefile"
    r"|could not find `Cargo\.toml`|\bgo\.mod file not found|cannot find main module"
    r"|there is no POM in this directory|^Task '[^'\n]{1,100}' not found"
    r"|Don't know how to build task|Justfile does not contain recipe"
    r"|can't open file '|^\S*sh: \S{1,200}: No such file or directory$"
    r"|^ERROR: usage: |^\S{0,100}pytest\S{0,20}: error: |^ERROR: file or directory not found"
    r"|^ERROR: not found: |^KeyboardInterrupt$|! KeyboardInterrupt !",
    re.MULTILINE,
)
"""Matches messages about a missing program, script or test, wrong usage, or an interrupt."""

_EMPTY = re.compile(
    r"\bno tests ran\b|^Ran 0 tests|\bno test files\b|\bno tests to run\b|^No tests found"
    r"|\b0 tests collected\b|\b(?:0 passed|0 passing)\b|\brunning 0 tests\b|\b0 examples, 0 fail"
    r"|^\d+ deselected|^# tests 0$|no tests found",
    re.MULTILINE | re.IGNORECASE,
)
"""Matches summaries that say that no test was run."""

_FAILS = re.compile(
    r"\b[1-9]\d* (?:failed|failing|errors?)\b|^FAILED\b|^--- FAIL|^FAIL\b|test result: FAILED",
    re.MULTILINE,
)
"""Matches summaries that report a failure or an error."""

_TESTS_FAIL = re.compile(
    r"\b[1-9]\d* (?:failed|failing)\b|^FAILED\b|^--- FAIL|test result: FAILED", re.MULTILINE
)
"""Matches summaries that report failed tests, as opposed to a linter's errors."""

_PASSES = re.compile(
    r"\b[1-9]\d* (?:passed|passing)\b|^OK(?: \(.*\))?$"
    r"|^ok\s+\S+\s+[\d.(](?!.*\[no tests to run\])",
    re.MULTILINE,
)
"""Matches summaries that report passed tests."""

_BROKEN = re.compile(
    r"\berrors? during collection\b|\b_FailedTest\b|could not compile|\[(?:build|setup) failed\]"
    r"|BUILD FAILURE|COMPILATION ERROR|INTERNALERROR>|^ERROR collecting "
    r"|ImportError while (?:load|imp)",
    re.MULTILINE,
)
"""Matches messages that the tests themselves could not be read or built."""

_PYTEST_FAILS = 1
"""Exit code of pytest when tests failed:
https://docs.pytest.org/en/stable/reference/exit-codes.html"""

_PYTEST_EMPTY = 5
"""Exit code of pytest when no tests were collected."""


def verdict_of(command: str, exit_code: int | None, output: str) -> Verdict:
    """Return how the checks of a command line ended. `exit_code` is None while the command runs."""
    if exit_code is None:
        return "unfinished"
    tail, read = output[-TAIL:], read_checks(command)
    if exit_code and _MISSING.search(tail) and not _FAILS.search(tail):
        return "not_run"
    seen = _FAILS.search(tail) or ("Ran 0 tests" not in tail and _PASSES.search(tail))
    if _EMPTY.search(tail) and not seen:
        return "not_run"
    if read.vouched and exit_code == 0:
        return "passed"
    if read.alone:
        empty = exit_code == _PYTEST_EMPTY and _is_pytest(read.checks)
        return "not_run" if empty or exit_code in _NOT_THE_CHECK_S else "failed"
    return "failed" if _FAILS.search(tail) else "unknown"


def reproduces(command: str, exit_code: int | None, output: str) -> bool:
    """Return True if a failed check shows that the code misbehaves: a test that ran and failed.

    Linters and builds find what was there before, and tests that could not be read show nothing.
    """
    read = read_checks(command)
    if not any(is_test_command(check) for check in read.checks) or _BROKEN.search(output[-TAIL:]):
        return False
    own = read.alone and _is_pytest(read.checks)
    if not all(is_test_command(check) for check in read.checks):
        return _TESTS_FAIL.search(output[-TAIL:]) is not None  # not only the linter's failure
    return not own or exit_code == _PYTEST_FAILS


def _is_pytest(checks: tuple[str, ...]) -> bool:
    """Return True if the only check is pytest."""
    return len(checks) == 1 and checks[0].partition(" ")[0].rpartition("/")[2] in {
        "pytest",
        "py.test",
    }
