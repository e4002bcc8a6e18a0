"""The verdict about a change follows from what was executed and from the change's text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.models.verification import (
    CaseResult,
    CheckExecution,
    OmittedCheck,
    TamperingFinding,
    Verification,
    VerificationReason,
)
from resolver.verification.decision import decide
from tests.verification.test_comparison import compare, run

FILES = ("bill.py", "tests/test_bill.py")
RANK = {"not_verified": 0, "checked": 1, "verified": 2}
FINDING = TamperingFinding(kind="intercepted_runner", path="conftest.py")


def verdict(found: Verification) -> tuple[str, str]:
    return found.verdict, found.reason


def case(message: str, status: str = "failed", name: str = "n") -> CheckExecution:
    failing = CaseResult.model_validate({"id": name, "status": status, "message": message})
    return CheckExecution(exit_code=1, seconds=1, cases=(failing,))


GOOD = compare(run(a="p"), run(a="p", n="p"), run(1, a="p", n="f"))


@pytest.mark.parametrize(
    ("base", "with_tests", "head", "expected", "reason"),
    [
        (run(a="p"), run(1, a="p", n="f"), run(a="p", n="p"), "verified", ""),
        (run(a="p"), run(1, n="f"), run(a="p", n="p"), "verified", ""),
        (run(1, a="f"), None, run(a="p"), "verified", ""),
        (
            run(1, a="p", b="f"),
            run(1, a="p", b="f", n="f"),
            run(1, a="p", b="f", n="p"),
            "verified",
            "",
        ),
        (run(a="p"), run(1, a="f"), run(a="p"), "verified", ""),
        (run(a="p"), None, run(a="p"), "checked", ""),
        (run(a="p"), run(a="p", n="p"), run(a="p", n="p"), "checked", ""),
        (run(a="p"), None, run(a="p", n="p"), "checked", ""),
        (run(a="p"), run(1, n="f"), run(1, a="f", n="p"), "not_verified", "regression"),
        (run(a="p", b="p"), run(1, n="f"), run(a="p", n="p"), "not_verified", "shrunken_suite"),
        (
            run(a="p", b="p"),
            run(1, n="f"),
            run(a="p", b="s", n="p"),
            "not_verified",
            "shrunken_suite",
        ),
        (run(1, a="p", b="f"), None, run(a="p"), "not_verified", "shrunken_suite"),
        (run(a="p"), run(1, n="f"), run(1, a="p", n="f"), "not_verified", "failed_at_both"),
        (run(1, a="f"), None, run(1, a="f"), "not_verified", "failed_at_both"),
        (run(1, a="f"), run(a="p"), run(a="p"), "not_verified", "tests_only"),
        (
            run(a="p"),
            run(1, n="f"),
            run(0, a="p", n="p", o="f"),
            "not_verified",
            "unreliable_report",
        ),
        (run(1, a="f"), None, run(1, a="p"), "not_verified", "unreliable_report"),
        (run(a="p"), None, run(1, a="p"), "not_verified", "regression"),
        (run(a="p"), None, run(None, a="p"), "not_verified", "time_limit"),
        (run(a="p"), None, run(137, a="p"), "not_verified", "regression"),
        (run(1, a="p", b="f"), None, run(137, a="p", b="f"), "not_verified", "head_failed_to_run"),
        (run(None), None, run(a="p"), "not_verified", "time_limit"),
        (run(127), None, run(a="p"), "not_verified", "base_failed_to_run"),
        (run(1), run(1, n="f"), run(n="p"), "not_verified", "base_failed_to_run"),
        (run(5, output="no tests ran"), run(1, n="f"), run(n="p"), "verified", ""),
        (run(0), run(1, n="f"), run(n="p"), "verified", ""),
        (run(0, a="p"), run(1, n="f"), run(0), "not_verified", "shrunken_suite"),
    ],
)
def test_the_verdict(
    base: CheckExecution,
    with_tests: CheckExecution | None,
    head: CheckExecution,
    expected: str,
    reason: str,
) -> None:
    found = decide([compare(base, head, with_tests or ())], changed_files=FILES)
    assert verdict(found) == (expected, reason)


@pytest.mark.parametrize(
    ("base", "with_tests", "head", "expected"),
    [
        (run(0), run(1, "bill: want 30, got 2"), run(0), "verified"),
        (run(1, "FAIL"), run(1, "FAIL"), run(0), "verified"),
        (run(0), run(2, "t.c: undefined reference to `tax'"), run(0), "checked"),
        (run(0), run(1, "SyntaxError: invalid syntax"), run(0), "checked"),
        (run(0), run(127, "make: not found"), run(0), "checked"),
        (run(0), run(0), run(0), "checked"),
        (run(1), run(0), run(0), "not_verified"),
        (run(0), run(1), run(1), "not_verified"),
        (run(1), run(1), run(1), "not_verified"),
    ],
)
def test_the_verdict_by_exit_codes_alone(
    base: CheckExecution, with_tests: CheckExecution, head: CheckExecution, expected: str
) -> None:
    assert decide([compare(base, head, with_tests)], changed_files=FILES).verdict == expected


@pytest.mark.parametrize(
    ("message", "status", "counts"),
    [
        ("assert 2 == 30", "failed", True),
        ("AttributeError: module 'bill' has no attribute 'tax'", "failed", True),
        ("ImportError: cannot import name 'tax'", "failed", True),
        ("java.lang.NullPointerException\n\tat bill.Bill.total", "error", True),
        ("AttributeError: module 'bill' has no attribute 'tax'", "error", True),
        ("ImportError: cannot import name 'tax' from 'bill'", "error", False),
        ("  File 'tests/test_bill.py', line 3\nSyntaxError: invalid syntax", "error", False),
        ("failed on setup with \"E fixture 'cart' not found\"", "error", False),
        ("", "error", False),
        ("Test suite failed to run\n\nCannot find module './tax'", "failed", False),
        ("unittest.loader._FailedTest", "failed", False),
    ],
)
def test_only_a_test_that_ran_and_failed_is_a_reproduction(
    message: str, status: str, counts: bool
) -> None:
    with_tests = case(message, status)
    found = decide([compare(run(a="p"), run(a="p", n="p"), with_tests)], changed_files=FILES)
    assert found.verdict == ("verified" if counts else "checked")
    assert found.reproduction == (("n",) if counts else ())
    assert found.broken_tests == (() if counts else ("n",))


def test_new_tests_that_pass_at_base_prove_nothing() -> None:
    check = compare(run(a="p"), run(a="p", n="p", m="p"), run(1, a="p", n="f", m="p"))
    found = decide([check], changed_files=FILES)
    assert (found.reproduction, found.proves_nothing) == (("n",), ("m",))


def test_a_new_test_whose_file_can_not_be_built_at_base_is_named() -> None:
    check = compare(run(a="p"), run(a="p", n="p"), run(1, "[build failed]", a="p"))
    found = decide([check], changed_files=FILES)
    assert (found.verdict, found.broken_tests) == ("checked", ("n",))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (("tests/test_bill.py",), "tests_only"),
        (("tests/test_bill.py", "README.md"), "tests_only"),
        (("conftest.py",), "tests_only"),
        (("tests/test_bill.py", "bill.py"), ""),
        (("tests/test_bill.py", "CMakeLists.txt"), ""),
        (("README.md",), ""),
        ((), "no_change"),
    ],
)
def test_a_change_of_tests_alone_is_not_verified(files: tuple[str, ...], expected: str) -> None:
    assert decide([GOOD], changed_files=files).reason == expected


@pytest.mark.parametrize("obstacle", ["disabled", "sandbox_error", "time_limit", "unfinished"])
def test_an_unfinished_verification_says_why(obstacle: VerificationReason) -> None:
    assert verdict(decide([], changed_files=FILES, obstacle=obstacle)) == ("not_verified", obstacle)
    assert decide([GOOD], changed_files=FILES, obstacle=obstacle).verdict == "not_verified"


def test_without_checks() -> None:
    omitted = OmittedCheck(name="e2e", command="make e2e", reason="needs a browser")
    assert decide([], changed_files=FILES).reason == "no_checks"
    assert decide([], changed_files=FILES, omitted=[omitted]).reason == "omitted"
    assert decide([GOOD], changed_files=FILES, omitted=[omitted]).verdict == "verified"


def test_a_check_that_never_ran_does_not_decide() -> None:
    other = compare(run(127), run(127))
    assert decide([GOOD, other], changed_files=FILES).verdict == "verified"


def test_a_missing_report_at_head_is_not_believed() -> None:
    head = run(a="p", n="p").model_copy(update={"report_complete": False})
    check = compare(run(a="p"), head, run(1, n="f"))
    assert decide([check], changed_files=FILES).reason == "unreliable_report"


def test_a_forged_report_without_a_test_that_passed_at_base_is_not_believed() -> None:
    base = run(**dict.fromkeys("abcdefgh", "p"))
    forged = run(n="p", **dict.fromkeys("abcdefg", "p"))
    check = compare(base, forged, run(1, n="f"))
    assert decide([check], changed_files=FILES).reason == "shrunken_suite"


CASES = st.dictionaries(st.sampled_from("abcdn"), st.sampled_from(["p", "f", "e", "s"]))
RUNS = st.builds(
    lambda code, cases, complete: run(code, **cases).model_copy(
        update={"report_complete": complete}
    ),
    st.sampled_from([0, 0, 1, 1, None, 127]),
    CASES,
    st.sampled_from([True, True, True, False]),
)
CHECK = st.tuples(RUNS, RUNS, st.none() | RUNS)
CHECKS = st.lists(CHECK, max_size=2)
FINDINGS = st.sampled_from([(), (), (FINDING,)])


def decided(
    checks: list[tuple[CheckExecution, CheckExecution, CheckExecution | None]],
    tampering: tuple[TamperingFinding, ...] = (),
    files: tuple[str, ...] = FILES,
) -> Verification:
    compared = [compare(base, head, tests or ()) for base, head, tests in checks]
    return decide(compared, changed_files=files, tampering=tampering)


@given(CHECKS, FINDINGS)
def test_a_verdict_is_never_better_than_what_was_seen(
    checks: list[tuple[CheckExecution, CheckExecution, CheckExecution | None]],
    tampering: tuple[TamperingFinding, ...],
) -> None:
    found = decided(checks, tampering)
    assert found == decided(checks, tampering)
    assert (found.verdict == "not_verified") == bool(found.reason)
    if found.verdict != "not_verified":
        assert not tampering
        assert not any(
            check.broken or check.shrank
            for check in found.checks
            if check.base and check.base.exit_code in (0, 1) and check.base.report_complete
        )
        assert any(check.head.exit_code is not None for check in found.checks)
    if found.verdict == "verified":
        assert found.reproduction
        assert not set(found.reproduction) & set(found.proves_nothing)


@given(st.lists(CHECK, min_size=1, max_size=2), st.sampled_from(["new", "a", "b"]))
def test_another_failing_test_at_head_never_makes_a_verdict_better(
    checks: list[tuple[CheckExecution, CheckExecution, CheckExecution | None]], name: str
) -> None:
    base, head, tests = checks[0]
    known = {case.id for case in base.cases if case.status in ("failed", "error")}
    failing = CaseResult(id=name, status="failed", message="assert 1 == 2")
    worse = head.model_copy(update={"cases": (*head.cases, failing)})
    if name in known and name not in {case.id for case in head.cases}:
        return  # the test failed at base and was gone: now it is known to fail as before
    if not head.cases:
        return  # what was a check without a report is now one with it, and is compared as such
    if head.exit_code != 0 and not any(case.status in ("failed", "error") for case in head.cases):
        return  # nothing explained why the check failed: now this test may
    before, after = decided(checks), decided([(base, worse, tests), *checks[1:]])
    assert RANK[after.verdict] <= RANK[before.verdict]


@given(CHECKS, FINDINGS)
def test_tests_alone_are_never_verified(
    checks: list[tuple[CheckExecution, CheckExecution, CheckExecution | None]],
    tampering: tuple[TamperingFinding, ...],
) -> None:
    assert decided(checks, tampering, ("tests/test_a.py",)).verdict == "not_verified"
