"""The executions of a check at base and at the change are compared test by test."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.models.verification import (
    CaseResult,
    CaseStatus,
    CheckComparison,
    CheckExecution,
    FlakyCase,
    ProjectCheck,
)
from resolver.verification.comparison import (
    WHOLE_CHECK,
    compare_executions,
    needs_rerun,
    reproductions_to_confirm,
)

CHECK = ProjectCheck(name="tests", command="pytest")
LETTERS: dict[str, CaseStatus] = {"p": "passed", "f": "failed", "e": "error", "s": "skipped"}


def run(exit_code: int | None = 0, output: str = "", **cases: str) -> CheckExecution:
    """Return an execution; each keyword is a test with the first letter of its status."""
    results = tuple(
        CaseResult(
            id=name, status=LETTERS[letter], message="assert 1 == 2" if letter in "fe" else ""
        )
        for name, letters in cases.items()
        for letter in letters
    )
    return CheckExecution(exit_code=exit_code, seconds=1, cases=results, output=output)


def compare(
    base: Sequence[CheckExecution] | CheckExecution,
    head: Sequence[CheckExecution] | CheckExecution,
    with_tests: Sequence[CheckExecution] | CheckExecution = (),
    deleted: Sequence[str] = (),
) -> CheckComparison:
    def many(runs: Sequence[CheckExecution] | CheckExecution) -> Sequence[CheckExecution]:
        return (runs,) if isinstance(runs, CheckExecution) else runs

    return compare_executions(
        CHECK,
        "full",
        base=many(base),
        base_with_tests=many(with_tests),
        head=many(head),
        deleted_files=deleted,
    )


@pytest.mark.parametrize(
    ("base", "head", "fixed", "broken", "shrank"),
    [
        (run(a="p"), run(a="p"), (), (), False),
        (run(1, a="f"), run(a="p"), ("a",), (), False),
        (run(1, a="e"), run(a="p"), ("a",), (), False),
        (run(a="p"), run(1, a="f"), (), ("a",), False),
        (run(a="p"), run(1, a="e"), (), ("a",), False),
        (run(a="p", b="p"), run(a="p"), (), ("b",), True),
        (run(a="p", b="p"), run(a="p", b="s"), (), ("b",), True),
        (run(1, a="p", b="f"), run(a="p"), (), (), True),
        (run(a="p", b="s"), run(a="p"), (), (), False),
        (run(a="p"), run(a="pf", b="p"), (), ("a",), False),
        (run(a="p"), run(), (), ("a",), True),
        (run(), run(1), (), ("tests",), False),
        (run(1), run(), ("tests",), (), False),
        (run(2), run(1), (), (), False),
        (run(a="p"), run(1, a="p"), (), ("tests",), False),
        (run(output="ok a\nok b\n"), run(output="ok a\n"), (), (), True),
        (run(output="ok a\n"), run(output=""), (), (), True),
        (run(output="ok a\n"), run(output="ok a\nok b\n"), (), (), False),
    ],
)
def test_what_differs(
    base: CheckExecution,
    head: CheckExecution,
    fixed: tuple[str, ...],
    broken: tuple[str, ...],
    shrank: bool,
) -> None:
    found = compare(base, head)
    assert (found.fixed, found.broken, found.shrank) == (fixed, broken, shrank)


def test_a_new_test_that_fails_without_the_fix_is_fixed() -> None:
    found = compare(run(a="p"), run(a="p", n="p"), run(1, a="p", n="f"))
    assert (found.fixed, found.added, found.missing) == (("n",), ("n",), ())


def test_a_changed_test_that_fails_without_the_fix_is_fixed() -> None:
    assert compare(run(a="p"), run(a="p"), run(1, a="f")).fixed == ("a",)


def test_a_flaky_test_is_neither_broken_nor_fixed_and_has_counts() -> None:
    found = compare([run(a="p"), run(a="p")], [run(1, a="f"), run(a="p"), run(1, a="f")])
    assert found.broken == ()
    assert found.flaky == (FlakyCase(id="a", passed=1, failed=2),)
    assert compare([run(1, a="f"), run(a="p")], run(a="p")).fixed == ()


def test_a_flaky_new_test_is_not_fixed() -> None:
    assert compare(run(a="p"), run(a="p", n="p"), [run(1, n="f"), run(n="p")]).fixed == ()


def test_tests_that_only_the_first_execution_has_are_not_gone() -> None:
    found = compare([run(a="p", b="p"), run(b="p")], [run(1, a="p", b="f"), run(1, b="f")])
    assert (found.broken, found.shrank) == (("b",), False)


def test_a_test_that_fails_in_each_repetition_is_broken_whatever_the_change_s_tests_say() -> None:
    found = compare(run(a="p"), [run(1, a="f"), run(1, a="f")], [run(a="p"), run(1, a="f")])
    assert found.broken == ("a",)


def test_a_flaky_check_without_a_report_is_named() -> None:
    found = compare([run(), run()], [run(1), run()])
    assert (found.broken, found.flaky) == ((), (FlakyCase(id="tests", passed=1, failed=1),))


@pytest.mark.parametrize("name", ["tests/test_a.py::test_x", "tests.test_a.T::x"])
def test_a_deleted_file_s_tests_are_not_broken(name: str) -> None:
    case = CaseResult(id=name, status="passed", file="tests/test_a.py")
    base = CheckExecution(exit_code=0, seconds=1, cases=(case,))
    gone = compare(base, run(other="p"), deleted=("tests/test_a.py",))
    assert (gone.broken, gone.missing, gone.shrank) == ((), (name,), False)


def test_addresses_in_names_do_not_matter() -> None:
    base = run(**{"test_a[<f at 0x7f001234>]": "p"})
    assert compare(base, run(**{"test_a[<f at 0x7f009999>]": "p"})).shrank is False


@pytest.mark.parametrize(
    ("base", "head", "shrank"),
    [
        ("ok a\nok b\n", "ok a\nok b\nok c\n", False),
        ("ok b (0.1s)\nok a\n", "ok a\nok b (0.25s)\n", False),
        ("ok /tmp/tmp.a81\n3 passed in 1.2s\n", "ok /tmp/tmp.x\n4 passed in 3.0s\n", False),
        ("ok a\nok b\n", "ok a\n", True),
        ("ok a\nok b\n", "ok a\nok c\n", True),
        ("done\n", "\n", True),
    ],
)
def test_a_pass_that_is_gone_from_the_output_is_missed(base: str, head: str, shrank: bool) -> None:
    runs = [CheckExecution(exit_code=0, seconds=1, output=output) for output in (base, head)]
    assert compare(*runs).shrank is shrank


def test_what_is_repeated() -> None:
    assert needs_rerun(run(a="p", b="p", c="f"), run(1, a="f", b="e", c="f", d="f")) == ("a", "b")
    assert needs_rerun(run(a="p"), run(1, a="p")) == (WHOLE_CHECK,)
    assert needs_rerun(run(), run(1)) == (WHOLE_CHECK,)
    assert needs_rerun(run(1, a="f"), run(a="p")) == ()
    assert reproductions_to_confirm(run(1, a="f", b="p"), run(a="p", b="p")) == ("a",)


RUNS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("pfes")).flatmap(
    lambda cases: st.sampled_from([0, 1, None]).map(lambda code: run(code, **cases))
)


@given(st.lists(RUNS, min_size=1, max_size=3), st.lists(RUNS, min_size=1, max_size=3))
def test_a_test_has_at_most_one_result(
    base: list[CheckExecution], head: list[CheckExecution]
) -> None:
    found = compare(base, head)
    assert not set(found.fixed) & set(found.broken)
    assert not {case.id for case in found.flaky} & set(found.fixed)
    assert not set(found.added) & set(found.missing)
    assert found == compare(base, head)
