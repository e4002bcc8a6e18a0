"""Tests of how tests are handed out: those of a group in one worker, modules of slow ones first."""

from dataclasses import dataclass

import pytest

from tests.scheduling import slow_first, unit_of

pytestmark = pytest.mark.xdist_group("groups")


def test_a_mark_reaches_the_scheduler(request: pytest.FixtureRequest) -> None:
    """The scheduler reads the end of a test's id, which an incompatible pytest leaves unchanged."""
    if not hasattr(request.config, "workerinput"):
        return
    assert request.node.nodeid.endswith("@groups")


def test_a_group_or_else_a_module_goes_to_one_worker() -> None:
    assert unit_of("tests/a.py::test_b@images") == unit_of("tests/c.py::test_d[x@y]@images")
    assert unit_of("tests/a.py::test_b[x::y@z]") == unit_of("tests/a.py::test_c") == "tests/a.py"


def test_a_module_with_slow_tests_comes_before_one_without() -> None:
    @dataclass(frozen=True)
    class Collected:
        nodeid: str
        is_slow: bool = False

    none, one, two = (
        [Collected(f"{module}.py::test_{number}", number < slow) for number in range(3)]
        for module, slow in (("none", 0), ("one", 1), ("two", 2))
    )
    ordered = slow_first([*none, *one, *two], lambda test: test.is_slow)
    assert ordered == [*two, *one, *none]
