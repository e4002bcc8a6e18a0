"""The verification of a change, with executions from a script."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from resolver.errors import SandboxError, SetupFailed
from resolver.events.lifecycle import CheckExecuted, VerificationCompleted
from resolver.models.verification import (
    CaseStatus,
    CheckExecution,
    ReviewPoint,
    TreeName,
    UnpreparedEnvironment,
    Verification,
)
from resolver.trace.view import evidence_of
from resolver.verification.execute import (
    REPETITIONS,
    VerificationRequest,
    verify_change,
)
from resolver.verification.runner import BaseResults, CheckRunner
from resolver.verification.selection import CheckSelection
from tests.verification.scripted import (
    CHECK,
    CONTROL,
    TIMED_OUT,
    TREES,
    HardCodedResult,
    ScriptedSandboxes,
    result,
)

WHOLE, PART, AGAIN = "run-tests", "run-tests test_a.py", "run-tests test_a.py::old"
NEW = "run-tests test_a.py::new"
TOUCHED = ("test_a.py",)
Answers = Mapping[tuple[TreeName, str], Sequence[HardCodedResult]]


def verify(
    sandboxes: ScriptedSandboxes,
    *,
    tests: tuple[str, ...] = ("test_a.py",),
    touched: tuple[str, ...] = TOUCHED,
    review: tuple[ReviewPoint, ...] = (),
    events: list[CheckExecuted] | None = None,
    interrupts: bool = False,
    unprepared: UnpreparedEnvironment | None = None,
    alters: bool = False,
    **options: object,
) -> Verification:
    record = events.append if events is not None else lambda _: None
    trees = dict(TREES)
    if alters:
        trees["head_with_base_tests"] = "e" * 40
    if not tests:
        del trees["base_with_tests"]

    def interruptible(interrupt: Callable[[], None]) -> AbstractContextManager[None]:
        if interrupts:
            sandboxes.on_execute = lambda *_: interrupt()
        return nullcontext()

    request = VerificationRequest(
        selection=CheckSelection((CHECK,), (), touched, touched),
        changed_files=("a.py", *tests),
        changed_tests=tests,
        review=review,
        unprepared=unprepared,
        interruptible=interruptible,
    )
    given: dict[str, Any] = {"seconds": 600.0, "clock": lambda: 0.0, **options}
    runner = CheckRunner(trees, "an environment", sandboxes.open, record, **given)
    return verify_change(request, runner)


HONEST: Answers = {
    ("base", WHOLE): [result(old="passed")],
    ("base_with_tests", PART): [result(old="passed", new="failed")],
    ("base_with_tests", NEW): [result(new="failed")],
    ("head", PART): [result(old="passed", new="passed")],
    ("head", WHOLE): [result(old="passed", new="passed")],
    ("head", NEW): [result(new="passed")],
    ("base_with_tests", CONTROL): [result(new="failed")],
    ("head", CONTROL): [result(new="passed")],
}


def broken(*again: CheckExecution) -> Answers:
    repeated = [("base", AGAIN), ("head", AGAIN)]
    return {
        **HONEST,
        ("head", WHOLE): [result(old="failed", new="passed")],
        ("head", PART): [result(old="failed", new="passed")],
        repeated[0]: [result(old="passed")],
        repeated[1]: again or [result(old="failed")],
    }


def test_a_fix_whose_test_fails_without_it_is_verified() -> None:
    sandboxes = ScriptedSandboxes(HONEST)
    verified = verify(sandboxes)
    assert (verified.verdict, verified.reason) == ("verified", None)
    assert verified.reproduction == ("test_a.py::new",)
    assert verified.checks[0].scope == "full"
    # The affected tests come first, and each tree has one sandbox.
    head = [command for tree, command in sandboxes.executed if tree == "head"]
    assert head[:2] == [PART, WHOLE]
    assert sorted(sandboxes.opened) == ["base", "base_with_tests", "head"]


@pytest.mark.parametrize(
    ("without_code", "verdict"), [("failed", "verified"), ("passed", "checked")]
)
def test_a_test_that_failed_before_is_executed_with_the_changed_tests_alone(
    without_code: CaseStatus, verdict: str
) -> None:
    answers = {
        ("base", WHOLE): [result(old="failed")],
        ("head", WHOLE): [result(old="passed")],
        ("head", PART): [result(old="passed")],
        ("base_with_tests", PART): [result(old=without_code)],
        ("base_with_tests", AGAIN): [result(old=without_code)],
        ("base_with_tests", CONTROL): [result(old=without_code)],
        ("head", AGAIN): [result(old="passed")],
        ("head", CONTROL): [result(old="passed")],
    }
    verified = verify(ScriptedSandboxes(answers))
    assert verified.verdict == verdict


def test_a_regression_is_repeated_at_both_commits_before_it_counts() -> None:
    sandboxes = ScriptedSandboxes(broken())
    verified = verify(sandboxes)
    assert (verified.verdict, verified.reason) == ("not_verified", "regression")
    assert verified.checks[0].broken == ("test_a.py::old",)
    assert sandboxes.executed.count(("base", AGAIN)) == REPETITIONS
    assert sandboxes.executed.count(("head", AGAIN)) == REPETITIONS


@pytest.mark.parametrize(
    ("trees", "reason"),
    [
        (("base_with_tests", "head"), None),
        (("base_with_tests",), "unreliable_report"),
        ((), None),
    ],
)
def test_a_reproduction_counts_if_a_test_that_must_fail_is_reported_so(
    trees: tuple[TreeName, ...], reason: str | None
) -> None:
    """Code of the change makes every report say that all tests passed: a test that can't pass is
    reported as passed with this code only, so that nothing is verified."""
    verified = verify(ScriptedSandboxes(HONEST, reports_failures=trees))
    assert verified.reason == reason
    assert verified.verdict == ("not_verified" if reason else "verified")
    assert not verified.checks[0].failing


OLD: Answers = {
    **HONEST,
    ("head_with_base_tests", WHOLE): [result(old="passed")],
}


def test_the_change_is_executed_with_the_tests_of_the_base_where_it_alters_them() -> None:
    sandboxes = ScriptedSandboxes(OLD)
    assert verify(sandboxes, alters=True).verdict == "verified"
    whole = [tree for tree, command in sandboxes.executed if command == WHOLE]
    assert sorted(whole) == ["base", "head", "head_with_base_tests"]
    without = ScriptedSandboxes(HONEST)
    assert verify(without).verdict == "verified"
    assert "head_with_base_tests" not in without.opened
    assert len(without.executed) == len(sandboxes.executed) - 1


def test_an_altered_test_that_fails_as_it_was_is_repeated_and_left_to_a_person() -> None:
    answers = {
        **OLD,
        ("head_with_base_tests", WHOLE): [result(old="failed")],
        ("head_with_base_tests", AGAIN): [result(old="failed")],
        ("base", AGAIN): [result(old="passed")],
        ("head", AGAIN): [result(old="passed")],
    }
    sandboxes = ScriptedSandboxes(answers)
    verified = verify(sandboxes, alters=True)
    assert (verified.verdict, verified.reason) == ("not_verified", "former_behavior")
    assert verified.checks[0].former == ("test_a.py::old",)
    assert sandboxes.executed.count(("head_with_base_tests", AGAIN)) == REPETITIONS


def test_only_the_result_at_base_is_kept_for_the_next_run(tmp_path: Path) -> None:
    results = BaseResults(tmp_path)
    verify(ScriptedSandboxes(HONEST), base_results=results)
    kept = [CheckExecution.model_validate_json(f.read_bytes()) for f in tmp_path.iterdir()]
    assert kept == [result(old="passed")]
    again, events = ScriptedSandboxes(HONEST), list[CheckExecuted]()
    assert verify(again, base_results=results, events=events).verdict == "verified"
    assert "base" not in again.opened
    assert [e.at for e in events if e.is_cached] == ["base"]


def test_executions_of_the_log_are_not_repeated() -> None:
    events: list[CheckExecuted] = []
    first = verify(ScriptedSandboxes(HONEST), events=events)
    known = {event.key: event.execution for event in events}
    again = ScriptedSandboxes({})
    assert verify(again, recorded=known) == first
    assert not again.opened


def test_only_the_affected_tests_count_where_the_time_does_not_suffice_for_all() -> None:
    answers = {
        **HONEST,
        ("base", WHOLE): [TIMED_OUT],
        ("head", WHOLE): [TIMED_OUT],
        ("base", PART): [result(old="passed")],
    }
    sandboxes = ScriptedSandboxes(answers)
    verified = verify(sandboxes, seconds=100.0)
    assert verified.verdict == "verified"
    assert verified.checks[0].scope == "affected"
    # A quarter of the time is kept back from the whole checks for that.
    limits = dict(zip(sandboxes.executed, sandboxes.limits, strict=True))
    assert limits["head", WHOLE] == 75.0
    assert limits["base", PART] == 100.0


def test_a_check_that_ends_nowhere_in_time_is_not_verified() -> None:
    answers: Answers = {("base", WHOLE): [TIMED_OUT], ("head", WHOLE): [TIMED_OUT]}
    verified = verify(ScriptedSandboxes(answers), tests=(), touched=())
    assert (verified.verdict, verified.reason) == ("not_verified", "time_limit")


@pytest.mark.parametrize("parallel", [False, True])
def test_a_lost_sandbox_is_said(parallel: bool) -> None:
    lost = SandboxError("the sandbox was lost", "start the run again")
    sandboxes = ScriptedSandboxes({**HONEST, ("head", WHOLE): [lost]})
    verified = verify(sandboxes, parallel=parallel)
    assert (verified.verdict, verified.reason) == ("not_verified", "sandbox_error")
    assert sandboxes.executed.count(("head", WHOLE)) == 1
    assert parallel or "base" not in sandboxes.opened


def test_no_check_is_executed_in_an_environment_that_does_not_fit_the_change() -> None:
    sandboxes = ScriptedSandboxes(HONEST)
    unprepared = UnpreparedEnvironment(paths=("requirements.txt",), cause="no_setup")
    verified = verify(sandboxes, unprepared=unprepared)
    assert (verified.verdict, verified.reason) == ("not_verified", "environment")
    assert verified.unprepared == unprepared
    assert not sandboxes.opened


def test_an_environment_that_lacks_something_is_named_whatever_else_the_change_does() -> None:
    line = "ModuleNotFoundError: No module named 'nowhere'"
    failed = CheckExecution(exit_code=4, seconds=1.0, output=f"conftest.py:1\nE   {line}")
    answers: Answers = {(tree, WHOLE): [failed] for tree in ("base", "head")}
    point = ReviewPoint(kind="manifest", path="package.json")
    found = verify(ScriptedSandboxes(answers), tests=(), touched=(), review=(point,))
    assert found.verdict == "not_verified" and found.lacks is not None
    assert (found.lacks.line, found.lacks.remedy) == (line, "setup")
    shown = evidence_of(VerificationCompleted(tree="f" * 40, evidence=found.evidence()))
    assert shown[0] == f"Not verified: {found.lacks.text}"


def test_a_set_up_that_fails_with_the_change_is_said() -> None:
    failed = SetupFailed(("requirements.txt",), "no such package", "setup_failed")
    verified = verify(ScriptedSandboxes({**HONEST, ("head", PART): [failed]}))
    assert (verified.verdict, verified.reason) == ("not_verified", "environment")
    assert verified.unprepared == UnpreparedEnvironment(
        paths=("requirements.txt",), cause="setup_failed", detail="no such package"
    )


def test_an_interruption_ends_everything() -> None:
    sandboxes = ScriptedSandboxes(HONEST)
    verified = verify(sandboxes, interrupts=True)
    assert (verified.verdict, verified.reason) == ("not_verified", "unfinished")
    assert len(sandboxes.executed) == 1
    assert sandboxes.interrupted.is_set()
