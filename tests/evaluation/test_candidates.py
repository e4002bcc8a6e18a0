"""Tests of deciding whether a fix of the past can be a task."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from resolver.evaluation.candidates import (
    OpenTree,
    Rejection,
    RejectionCause,
    find_telling_check,
    owner_name,
)
from resolver.models.verification import CheckExecution, ProjectCheck, TreeName
from resolver.verification.runner import CheckExecutor

CHECK = ProjectCheck(name="tests", command="make test")
NARROWED = ProjectCheck(name="tests", command="make test FILE=tests/a")


class ScriptedExecutor:
    """Ends each check with the next of its exit codes, the last one again and again."""

    def __init__(self, exit_codes: Sequence[int | None]) -> None:
        self.left = list(exit_codes)

    def execute(self, check: ProjectCheck, _: float) -> CheckExecution:
        code = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        return CheckExecution(exit_code=code, seconds=0.1, output=f"ended with {code}")

    def interrupt(self) -> None:
        raise AssertionError("nothing interrupts a candidate")


def scripted(fixed: Sequence[int | None], broken: Sequence[int | None]) -> OpenTree:
    executors = {"head": ScriptedExecutor(fixed), "base_with_tests": ScriptedExecutor(broken)}

    @contextmanager
    def open_tree(tree: TreeName) -> Iterator[CheckExecutor]:
        yield executors[tree]

    return open_tree


def test_a_check_tells_if_it_fails_without_the_fix_and_passes_with_it_three_times() -> None:
    assert find_telling_check(scripted([0], [1, 2, 1]), [(CHECK, 60)]) == CHECK


@pytest.mark.parametrize(
    ("fixed", "broken", "cause"),
    [
        ([1], [1], "fails_with_fix"),
        ([0], [0], "passes_without_fix"),
        ([0, 0, 1], [1], "flaky"),
        ([0], [1, 1, 0], "flaky"),
        ([0], [1, None], "flaky"),
        ([None], [1], "time_limit"),
        ([0], [None], "time_limit"),
    ],
)
def test_a_fix_is_not_usable(
    fixed: list[int | None], broken: list[int | None], cause: RejectionCause
) -> None:
    found = find_telling_check(scripted(fixed, broken), [(CHECK, 60)])
    assert isinstance(found, Rejection)
    assert found.cause == cause


def test_the_next_check_is_tried_if_one_shows_nothing() -> None:
    checks = [(CHECK, 60.0), (NARROWED, 60.0)]
    assert find_telling_check(scripted([1, 0], [1]), checks) == NARROWED
    found = find_telling_check(scripted([1, 0], [0]), checks)
    assert isinstance(found, Rejection) and found.cause == "fails_with_fix"


@pytest.mark.parametrize(
    ("folder", "owner"),
    [
        ("sums", "sums"),
        ("my app", "myapp"),
        (".dotted", "dotted"),
        ("a_1.x", "a_1.x"),
        ("…", "history"),
    ],
)
def test_the_owner_of_tasks_is_a_name_that_harbor_accepts(folder: str, owner: str) -> None:
    assert owner_name(Path(folder)) == owner
