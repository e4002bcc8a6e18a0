"""The executions of a check at the trees of a change are compared test by test."""

from collections.abc import Sequence

import pytest

from resolver.models.verification import (
    CaseResult,
    CaseStatus,
    CheckComparison,
    CheckExecution,
    FlakyCase,
    ProjectCheck,
    TreeName,
)
from resolver.verification.comparison import (
    CONFIRMATIONS,
    TreeResults,
    compare_check,
    fails_without_test,
    needs_rerun,
    reproductions_to_confirm,
)

CHECK = ProjectCheck(name="tests", command="pytest")
LETTERS: dict[str, CaseStatus] = {"p": "passed", "f": "failed", "e": "error", "s": "skipped"}

Runs = Sequence[CheckExecution] | CheckExecution


def run(exit_code: int | None = 0, output: str = "", /, **cases: str) -> CheckExecution:
    """Return an execution; each keyword is a test with the first letter of its status."""
    return run_of(exit_code, cases, output)


def run_of(exit_code: int | None, cases: dict[str, str], output: str = "") -> CheckExecution:
    results = tuple(
        CaseResult(
            id=name, status=LETTERS[letter], message="assert 1 == 2" if letter in "fe" else ""
        )
        for name, letters in cases.items()
        for letter in letters
    )
    return CheckExecution(exit_code=exit_code, seconds=1, cases=results, output=output)


def results_of(runs: Runs) -> TreeResults:
    """Return what was seen at a tree; a single execution gives the same whenever it is repeated."""
    if isinstance(runs, CheckExecution):
        return TreeResults((runs,), (runs,) * (CONFIRMATIONS - 1))
    return TreeResults(tuple(runs[:1]), tuple(runs[1:]))


def trees_of(
    base: Runs, head: Runs, with_tests: Runs = (), old: Runs = ()
) -> dict[TreeName, TreeResults]:
    found: dict[TreeName, TreeResults] = {"base": results_of(base), "head": results_of(head)}
    if with_tests:
        found["base_with_tests"] = results_of(with_tests)
    if old:
        found["head_with_base_tests"] = results_of(old)
    return found


def compare(base: Runs, head: Runs, with_tests: Runs = (), old: Runs = ()) -> CheckComparison:
    return compare_check(CHECK, "full", trees_of(base, head, with_tests, old))


def test_the_tests_that_differ_are_named() -> None:
    base, without = run(1, a="p", b="p", c="f", d="p", s="s"), run(1, n="f")
    found = compare(base, run(1, a="p", b="e", c="p", n="p"), without)
    assert (found.broken, found.missing, found.reproduction) == (("b",), ("d",), ("n",))
    repeated = compare(run(a="p"), run(a="pf", b="p"))
    assert repeated.broken == ("a",)


@pytest.mark.parametrize("side", ["without the code", "with it"])
def test_a_reproduction_is_seen_three_times_at_both_trees(side: str) -> None:
    without, after = run(1, n="f"), run(a="p", n="p")
    often, seldom = (CONFIRMATIONS, CONFIRMATIONS - 1)
    counts = (seldom, often) if side == "without the code" else (often, seldom)
    assert compare(run(a="p"), [after] * often, [without] * often).reproduction == ("n",)
    assert compare(run(a="p"), [after] * counts[1], [without] * counts[0]).reproduction == ()


@pytest.mark.parametrize(
    ("head", "without", "old"),
    [("ppp", "fpf", ""), ("pfp", "fff", ""), ("ppp", "ffp", ""), ("ppp", "fff", "pf")],
)
def test_a_test_that_differs_in_one_repetition_is_flaky_and_proves_nothing(
    head: str, without: str, old: str
) -> None:
    with_code, without_code, with_old_tests = (
        [run(int(letter == "f"), a="p", n=letter) for letter in letters]
        for letters in (head, without, old)
    )
    found = compare(run(a="p"), with_code, without_code, with_old_tests)
    assert found.reproduction == ()
    assert [case.id for case in found.flaky] == ["n"]


def test_tests_that_only_the_whole_execution_has_are_not_missing() -> None:
    found = compare([run(a="p", b="p"), run(b="p")], [run(1, a="p", b="f"), run(1, b="f")])
    assert (found.broken, found.missing) == (("b",), ())


@pytest.mark.parametrize("base", [{"t[1]": "p"}, {"t[1]": "p", "t[2]": "s"}])
def test_another_case_of_a_test_does_not_hide_one_that_no_longer_runs(base: dict[str, str]) -> None:
    skipped = run_of(0, {"t[1]": "s", "t[2]": "p"})
    assert compare(run_of(0, base), skipped).missing == ("t[1]",)
    if "t[2]" in base:
        assert compare(run_of(0, base), run_of(0, {"t[2]": "p"})).missing == ("t[1]",)


def test_a_test_that_is_flaky_without_the_change_is_not_blamed_on_it() -> None:
    found = compare([run(a="p"), run(1, a="f")], run(1, a="f"))
    assert (found.broken, found.failing) == ((), ())
    assert [case.id for case in found.flaky] == ["a"]


def test_a_flaky_check_without_a_report_is_named() -> None:
    found = compare_check(
        CHECK,
        "full",
        {"base": TreeResults((run(), run())), "head": TreeResults((run(1), run()))},
    )
    assert (found.broken, found.flaky) == ((), (FlakyCase(id="tests", passed=1, failed=1),))


# -- what fails at the base too


def test_what_fails_with_and_without_the_change_is_known_and_does_not_count() -> None:
    found = compare(run(1, a="p", k="f"), run(1, a="p", k="f", n="p"), run(1, n="f"))
    assert (found.known, found.broken, found.failing) == (("k",), (), ())
    assert found.reproduction == ("n",)


def test_a_known_failure_whose_name_shifts_with_a_new_row_is_still_known() -> None:
    base = run_of(1, {"t[row0]": "p", "t[row1]": "f"})
    head = run_of(1, {"t[row0]": "p", "t[row1]": "p", "t[row2]": "f"})
    found = compare(base, head, run(1, other="f"), old=base)
    assert (found.failing, found.broken, found.missing) == ((), (), ())
    worse = run_of(1, {"t[row0]": "f", "t[row1]": "p", "t[row2]": "f"})
    assert compare(base, worse, run(1, other="f"), old=base).failing == ("t[row0]", "t[row2]")


def test_new_tests_that_prove_nothing_are_named() -> None:
    found = compare(run(a="p"), run(a="p", n="p", m="p"), run(1, a="p", n="f", m="p"))
    assert (found.reproduction, found.useless) == (("n",), ("m",))
    unbuilt = compare(run(a="p"), run(a="p", n="p"), run(1, "[build failed]", a="p"))
    assert (unbuilt.reproduction, unbuilt.not_run) == ((), ("n",))


# -- the tests of the base, which the change has altered


@pytest.mark.parametrize(
    "error",
    [
        CaseResult(id="t.py", status="error", message="ImportError while importing test"),
        CaseResult(id="t.py", status="failed", message="No", file="tests/t.py"),
        CaseResult(id="unittest.loader._FailedTest.t", status="failed", message="No"),
    ],
)
def test_tests_that_cannot_be_loaded_with_the_change_are_lost_and_not_altered(
    error: CaseResult,
) -> None:
    unloaded = CheckExecution(exit_code=2, seconds=1, cases=(error,))
    base = run(0, a="p", b="p")
    found = compare(base, unloaded, run(1, new="f"), old=unloaded)
    assert (found.missing, found.former) == (("a", "b"), ())
    removed = compare(base, run(0, new="p"), run(1, new="f"), old=unloaded)
    assert removed.former == ("a", "b")


def test_a_row_that_shifts_the_names_of_others_breaks_nothing() -> None:
    base = run_of(0, {"t[row0]": "p", "t[row1]": "p"})
    head = run_of(0, {"t[new]": "p", "t[row1]": "p", "t[row2]": "p"})
    found = compare(base, head, old=base)
    assert (found.missing, found.broken, found.failing) == ((), (), ())


# -- names that change by themselves


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("test_invalid[05:50:59 2026-11-29]", "test_invalid[05:53:12 2026-11-29]"),
        ("suite > works at 05:50:59", "suite > works at 05:53:12"),
    ],
)
def test_a_time_in_a_name_does_not_make_a_test_missing(before: str, after: str) -> None:
    base = run_of(0, {before: "p", "other": "p"})
    found = compare(base, run_of(0, {after: "p", "other": "p"}))
    assert (found.missing, found.broken, found.added) == ((), (), ())
    assert compare(base, run_of(1, {after: "f", "other": "p"})).broken == (after,)
    assert compare(base, run_of(0, {"other": "p"})).missing == (before,)


def test_as_many_cases_of_a_function_are_needed_as_there_were() -> None:
    base = run_of(0, {"t[a1]": "p", "t[b2]": "p"})
    assert compare(base, run_of(0, {"t[c3]": "p"})).missing == ("t[a1]", "t[b2]")


# -- what is repeated


def test_what_is_repeated() -> None:
    base = run(a="p", b="p", c="f")
    head = run(1, a="f", b="e", c="f", d="f")
    assert needs_rerun(trees_of(base, head)) == ("a", "b", "d")
    assert needs_rerun(trees_of(run(a="p"), run(a="p"), old=run(1, a="f"))) == ("a",)
    assert needs_rerun(trees_of(run(1, a="f"), run(a="p"))) == ()
    assert reproductions_to_confirm(trees_of(run(1, a="f", b="p"), run(a="p", b="p"))) == ("a",)
    new = trees_of(run(a="p"), run(a="p", n="p"), run(1, n="f"))
    assert reproductions_to_confirm(new) == ("n",)


@pytest.mark.parametrize(
    ("base", "later", "repeated"),
    [
        (run(a="p"), run(1, a="p"), True),
        (run(), run(1), True),
        (run(1, a="p", b="f"), run(4), True),
        (run(1, a="p", b="f"), run(1, a="p", b="f"), False),
        (run(a="p"), run(1, a="f"), False),
        (run(a="p"), run(None), False),
        (run(1, a="p", b="f"), run(a="p", b="p"), False),
    ],
)
def test_a_check_that_fails_without_a_failing_test_is_repeated(
    base: CheckExecution, later: CheckExecution, repeated: bool
) -> None:
    assert fails_without_test(base, later) is repeated
