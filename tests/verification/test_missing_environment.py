"""Why no test of a check ran, from the outputs of real runners."""

import pytest

from resolver.models.verification import (
    CaseResult,
    CheckExecution,
    Remedy,
)
from resolver.verification.missing_environment import find_missing_environment


def ended(output: str, exit_code: int | None = 1, *cases: CaseResult) -> CheckExecution:
    return CheckExecution(exit_code=exit_code, seconds=1.0, output=output, cases=cases)


@pytest.mark.parametrize(
    ("output", "line", "remedy"),
    [
        ("ImportError while loading conftest '/x/conftest.py'.\nconftest.py:3: in <module>\n"
         "E   ModuleNotFoundError: No module named 'requests'",
         "ModuleNotFoundError: No module named 'requests'", "setup"),
        ("/usr/bin/python: No module named pytest", "/usr/bin/python: No module named pytest",
         "setup"),
        ("> x@1 test\n> jest\n\nsh: 1: jest: not found", "sh: 1: jest: not found", "setup"),
        ("Error: Cannot find module 'express'\nRequire stack:",
         "Error: Cannot find module 'express'", "setup"),
        ("x.sh: line 3: npm: command not found", "x.sh: line 3: npm: command not found", "image"),
        ("/bin/sh: 1: cargo: not found", "/bin/sh: 1: cargo: not found", "image"),
        ("go: downloading a v1\na.go:3:2: dial tcp: lookup proxy.golang.org: no such host\n",
         "a.go:3:2: dial tcp: lookup proxy.golang.org: no such host", "egress"),
        ("WARNING: Retrying: Temporary failure in name resolution\n"
         "ERROR: Could not find a version that satisfies the requirement x",
         "WARNING: Retrying: Temporary failure in name resolution", "egress"),
        ("[ERROR] Could not transfer artifact junit:junit:4 from central",
         "[ERROR] Could not transfer artifact junit:junit:4 from central", "egress"),
    ],
)  # fmt: skip
def test_the_line_that_says_it_and_the_remedy_are_found(
    output: str, line: str, remedy: Remedy
) -> None:
    found = find_missing_environment(ended(output))
    assert found is not None
    assert (found.line, found.remedy) == (line, remedy)
    assert found.text.startswith(f"no test ran: {line}. ")


@pytest.mark.parametrize(
    "execution",
    [
        ended("No module named 'x'", 0),
        ended("No module named 'x'", None),
        ended("No module named 'x'", 1, CaseResult(id="a", status="passed")),
        ended("No module named 'x'", 1, CaseResult(id="a", status="failed")),
        ended("SyntaxError: invalid syntax", 2),
    ],
)
def test_where_tests_ran_or_the_cause_is_another_nothing_is_missing(
    execution: CheckExecution,
) -> None:
    assert find_missing_environment(execution) is None


def test_errors_of_loading_say_what_is_missing() -> None:
    case = CaseResult(id="tests/test_a.py", status="error", message="No module named 'pytz'")
    found = find_missing_environment(ended("1 error in 0.1s", 2, case))
    assert found is not None
    assert (found.line, found.remedy) == ("No module named 'pytz'", "setup")


def test_the_usual_set_up_is_named_if_it_was_not_executed() -> None:
    found = find_missing_environment(ended("No module named x"), "pip install -e .")
    assert found is not None
    assert "Install what the tests need: `setup: pip install -e .` in" in found.text
