"""Tests of the retry policy."""

import pytest

from resolver.errors import ForgeError, ResolverError
from tests.parts.clock import PassingTime


def always(_: ResolverError) -> float | None:
    return 0.0


def test_waits_double_up_to_a_maximum_and_end_at_the_limit() -> None:
    time = PassingTime()

    def fail() -> None:
        raise ForgeError("down")

    with pytest.raises(ForgeError, match="down"):
        time.retries(120.0).call(fail, always)
    assert time.waits == [1, 2, 4, 8, 16, 30, 30]


def test_a_failure_that_asks_for_a_longer_wait_gets_it() -> None:
    time, failures = PassingTime(), iter([ForgeError("limited")])

    def attempt() -> str:
        for failure in failures:
            raise failure
        return "done"

    assert time.retries().call(attempt, lambda _: 50.0) == "done"
    assert time.waits == [50]


@pytest.mark.parametrize(("seconds", "wait"), [(0.0, 0.0), (240.0, None), (240.0, 300.0)])
def test_a_permanent_failure_is_not_retried(seconds: float, wait: float | None) -> None:
    time, attempts = PassingTime(), list[int]()

    def fail() -> None:
        attempts.append(1)
        raise ForgeError("no")

    with pytest.raises(ForgeError):
        time.retries(seconds).call(fail, lambda _: wait)
    assert (attempts, time.waits) == ([1], [])
