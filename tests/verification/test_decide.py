"""The verdict about a change follows from what was executed at its trees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.models.verification import (
    CaseResult,
    CheckExecution,
    OmittedCheck,
    ReviewPoint,
    Verification,
    VerificationReason,
)
from resolver.verification.decide import decide
from tests.verification.test_comparison import compare, run, run_of

FILES = ("bill.py", "tests/test_bill.py")
POINT = ReviewPoint(kind="manifest", path="package.json")


def verdict(found: Verification) -> tuple[str, str | None]:
    return found.verdict, found.reason


def case(message: str, status: str = "failed", name: str = "n") -> CheckExecution:
    failing = CaseResult.model_validate({"id": name, "status": status, "message": message})
    return CheckExecution(exit_code=1, seconds=1, cases=(failing,))


CUT_OFF = run(a="p").model_copy(update={"report_complete": False})
"""An execution whose report ends in the middle: other tests may have run."""

GOOD = compare(run(a="p"), run(a="p", n="p"), run(1, a="p", n="f"))


@pytest.mark.parametrize(
    ("base", "with_tests", "head", "expected"),
    [
        (run(a="p"), run(1, a="p", n="f"), run(a="p", n="p"), "verified"),
        (run(a="p"), run(1, n="f"), run(a="p", n="p"), "verified"),
        (run(1, a="f"), None, run(a="p"), "verified"),
        (run(1, a="p", b="f"), run(1, b="f", n="f"), run(a="p", b="p", n="p"), "verified"),
        (run(a="p"), run(1, a="f"), run(a="p"), "verified"),
        (run(1, a="p", k="f"), run(1, n="f"), run(1, a="p", k="f", n="p"), "verified"),
        (run(5, "no tests ran"), run(1, n="f"), run(n="p"), "verified"),
        (run(0), run(1, n="f"), run(n="p"), "verified"),
        (run(a="p"), None, run(a="p"), "checked"),
        (run(a="p"), run(a="p", n="p"), run(a="p", n="p"), "checked"),
        (run(a="p"), None, run(a="p", n="p"), "checked"),
        (run(1, a="p", k="f"), None, run(1, a="p", k="f"), "checked"),
        (run(1, a="p", b="f"), run(a="p", b="p"), run(a="p", b="p"), "checked"),
        (run(a="p"), run(1, n="f"), run(1, a="f", n="p"), "regression"),
        (run(a="p"), None, run(1, a="p"), "regression"),
        (run(1, a="p", k="f"), None, run(1, a="f", k="f"), "regression"),
        (run(a="p", b="p"), run(1, n="f"), run(a="p", n="p"), "missing_tests"),
        (run(a="p", b="p"), run(1, n="f"), run(a="p", b="s", n="p"), "missing_tests"),
        (run(1, a="p", b="f"), None, run(a="p"), "missing_tests"),
        (run(a="p"), run(1, n="f"), run(1, a="p", n="f"), "failing_tests"),
        (run(1, a="f"), None, run(1, a="f"), "failed_at_both"),
        (run(a="p"), run(1, n="f"), run(0, a="p", n="p", o="f"), "failing_tests"),
        (run(1, a="p", k="f"), run(1, n="f"), run(0, a="p", k="f", n="p"), "unreliable_report"),
        (run(1, a="f"), None, run(1, a="p"), "unreliable_report"),
        (run(a="p"), None, run(None, a="p"), "time_limit"),
        (run(a="p"), None, run(137, a="p"), "head_failed_to_run"),
        (run(1, a="p", b="f"), None, run(137, a="p", b="f"), "head_failed_to_run"),
        (run(1, a="p", k="f"), None, run(4), "head_failed_to_run"),
        (run(0, a="p"), run(1, n="f"), run(0), "head_failed_to_run"),
        (run(None), None, run(a="p"), "time_limit"),
        (run(127), None, run(a="p"), "base_failed_to_run"),
        (run(127), None, run(0), "base_failed_to_run"),
        (CUT_OFF, run(1, n="f"), run(a="p", n="p"), "base_failed_to_run"),
        (run(1), run(1, n="f"), run(n="p"), "base_failed_to_run"),
        # An exit code alone is never a reproduction.
        (run(0), run(1, "bill: want 30, got 2"), run(0), "checked"),
        (run(1, "FAIL"), run(1, "FAIL"), run(0), "checked"),
        (run(0), run(0), run(0), "checked"),
        (run(0), run(1), run(1), "regression"),
        (run(1), run(1), run(1), "failed_at_both"),
    ],
)
def test_the_verdict(
    base: CheckExecution, with_tests: CheckExecution | None, head: CheckExecution, expected: str
) -> None:
    found = decide([compare(base, head, with_tests or ())], changed_files=FILES)
    is_good = expected in {"verified", "checked"}
    assert verdict(found) == ((expected, None) if is_good else ("not_verified", expected))


@pytest.mark.parametrize(
    ("old", "head", "expected"),
    [
        # The old tests pass as they were: whatever the change did to them doesn't matter.
        (run(a="p", b="p"), run(a="p", n="p"), "verified"),
        (run(a="p", b="p"), run(a="p", b="s", n="p"), "verified"),
        (run(a="p", b="p", n="p"), run(a="p", b="p", n="p"), "verified"),
        # They don't, and the change altered or deleted them: a person decides.
        (run(1, a="p", b="f"), run(a="p", b="p", n="p"), "former_behavior"),
        (run(1, a="p", b="f"), run(a="p", n="p"), "former_behavior"),
        (run(2), run(a="p", b="p", n="p"), "former_behavior"),
        # They fail as they were and as they are.
        (run(1, a="p", b="f"), run(1, a="p", b="f", n="p"), "regression"),
        (run(a="p", b="p"), run(1, a="p", b="f", n="p"), "failing_tests"),
        # A forged report of the old tests, a lost one, and one that took too long.
        (run(0, a="p", b="p", k="f"), run(a="p", b="p", n="p"), "unreliable_report"),
        (run(None, a="p"), run(a="p", b="p", n="p"), "time_limit"),
        # Other exit codes may only say that the tests of the change are not there.
        (run(1, a="p", b="p"), run(a="p", b="p", n="p"), "verified"),
    ],
)
def test_the_verdict_about_altered_tests(
    old: CheckExecution, head: CheckExecution, expected: str
) -> None:
    check = compare(run(a="p", b="p"), head, run(1, n="f"), old)
    found = decide([check], changed_files=FILES)
    is_good = expected in {"verified", "checked"}
    assert verdict(found) == ((expected, None) if is_good else ("not_verified", expected))


def test_an_exit_code_that_is_worse_with_the_altered_tests_too_is_a_regression() -> None:
    found = decide([compare(run(0), run(1), (), run(1))], changed_files=FILES)
    assert verdict(found) == ("not_verified", "regression")


def test_an_exit_code_of_the_change_alone_is_a_regression_although_every_test_passes() -> None:
    found = decide([compare(run(a="p"), run(1, a="p"), (), run(a="p"))], changed_files=FILES)
    assert verdict(found) == ("not_verified", "regression")


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
    assert found.checks[0].not_run == (() if counts else ("n",))


def test_a_part_that_a_person_must_look_at_is_at_most_checked() -> None:
    found = decide([GOOD], changed_files=FILES, review=[POINT])
    assert (*verdict(found), found.review) == ("checked", None, (POINT,))
    assert found.reproduction == ("n",)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("bill.py::bill.total", "checked"), ("tests/test_bill.py::test_total", "verified")],
)
def test_tests_in_documentation_count_where_they_are_executed(name: str, expected: str) -> None:
    point = ReviewPoint(kind="doctests", path="bill.py")
    check = compare(run_of(0, {name: "p"}), run_of(0, {name: "p", "n": "p"}), run(1, n="f"))
    assert decide([check], changed_files=FILES, review=[point]).verdict == expected


@pytest.mark.parametrize(
    ("obstacle", "expected"),
    [
        ("environment", "environment"),
        ("time_limit", "regression"),
        ("sandbox_error", "regression"),
        (None, "regression"),
    ],
)
def test_the_worst_reason_is_given(obstacle: VerificationReason, expected: str) -> None:
    doubtful = compare(run(a="p"), CUT_OFF)
    broken = compare(run(a="p", b="p"), run(1, a="f"))
    found = decide([doubtful, broken], changed_files=FILES, obstacle=obstacle)
    assert verdict(found) == ("not_verified", expected)


@pytest.mark.parametrize("obstacle", ["sandbox_error", "time_limit", "unfinished"])
def test_an_unfinished_verification_says_why(obstacle: VerificationReason) -> None:
    assert verdict(decide([], changed_files=FILES, obstacle=obstacle)) == ("not_verified", obstacle)
    assert decide([GOOD], changed_files=FILES, obstacle=obstacle).verdict == "not_verified"


def test_checks_that_are_not_there_or_never_ran() -> None:
    omitted = OmittedCheck(name="e2e", command="make e2e", reason="needs a browser")
    assert verdict(decide([], changed_files=FILES)) == ("no_checks", None)
    assert decide([], changed_files=FILES, omitted=[omitted]).reason == "omitted"
    assert decide([GOOD], changed_files=FILES, omitted=[omitted]).verdict == "verified"
    other = compare(run(127), run(127))
    assert decide([GOOD, other], changed_files=FILES).verdict == "verified"
    assert decide([GOOD], changed_files=()).reason == "no_change"


def test_an_incomplete_report_at_head_is_not_believed() -> None:
    head = run(a="p", n="p").model_copy(update={"report_complete": False})
    check = compare(run(a="p"), head, run(1, n="f"))
    assert decide([check], changed_files=FILES).reason == "unreliable_report"


CASES = st.dictionaries(st.sampled_from("abcdn"), st.sampled_from(["p", "f", "e", "s"]))
RUNS = st.builds(
    lambda code, cases, complete: run_of(code, cases).model_copy(
        update={"report_complete": complete}
    ),
    st.sampled_from([0, 0, 1, 1, None, 127]),
    CASES,
    st.sampled_from([True, True, True, False]),
)
CHECK = st.tuples(RUNS, RUNS, st.none() | RUNS, st.none() | RUNS)
CHECKS = st.lists(CHECK, max_size=2)
POINTS = st.sampled_from([(), (), (POINT,)])
Runs = tuple[CheckExecution, CheckExecution, CheckExecution | None, CheckExecution | None]


def decided(checks: list[Runs], review: tuple[ReviewPoint, ...] = ()) -> Verification:
    compared = [compare(base, head, new or (), old or ()) for base, head, new, old in checks]
    return decide(compared, changed_files=FILES, review=review)


@given(CHECKS, POINTS)
def test_a_verdict_is_never_better_than_what_was_seen(
    checks: list[Runs], review: tuple[ReviewPoint, ...]
) -> None:
    found = decided(checks, review)
    assert found == decided(checks, review)
    assert (found.verdict == "not_verified") == bool(found.reason)
    if found.is_ready:
        assert not any(
            check.broken or check.missing or check.failing or check.former
            for check in found.checks
            if check.base and check.base.exit_code in (0, 1) and check.base.report_complete
        )
        assert any(check.head.exit_code is not None for check in found.checks)
    if found.verdict == "verified":
        assert found.reproduction
        assert not review
        assert not set(found.reproduction) & {n for c in found.checks for n in c.useless}
