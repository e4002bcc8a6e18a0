"""Tests of the limits of a run: when they end it, and when the agent is warned."""

from datetime import UTC, datetime, timedelta

import pytest

from resolver.controller.limits import check_limits, limit_warning
from resolver.errors import LimitReached
from resolver.events.lifecycle import LimitsExtended, ModelReplied
from resolver.events.state import State
from resolver.models.run import Completion, RunLimits

START = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = RunLimits(max_iterations=10, max_budget=1.0, max_time=100)


def after(replies: int, cost: float = 0.0, limits: RunLimits = LIMITS) -> State:
    reply = Completion(model="m", cost=cost)
    state = State.fold([LimitsExtended(id=0, timestamp=START, limits=limits)])
    for i in range(replies):
        state.apply(ModelReplied(id=i + 1, timestamp=START, completion=reply))
    return state


def test_a_run_below_all_limits_continues() -> None:
    check_limits(after(9, 0.1), START + timedelta(seconds=99))


@pytest.mark.parametrize(
    ("state", "seconds", "limit", "says"),
    [
        (after(10), 0, "iterations", "10 of 10 iterations"),
        (after(2, 0.5), 0, "budget", "$1.00 of $1.00"),
        (after(1), 100, "time", "100 of 100 seconds"),
    ],
)
def test_an_exhausted_limit_ends_the_run_and_is_named(
    state: State, seconds: int, limit: str, says: str
) -> None:
    with pytest.raises(LimitReached) as caught:
        check_limits(state, START + timedelta(seconds=seconds))
    assert caught.value.limit == limit
    assert says in caught.value.what
    assert caught.value.next_step


def test_the_agent_is_warned_two_steps_before_the_end_and_once() -> None:
    assert limit_warning(after(7), START) is None
    state = after(8)
    warning = limit_warning(state, START)
    assert warning is not None
    assert warning.to_agent
    assert "Only 2 replies are left" in warning.message
    state.apply(warning.model_copy(update={"id": 9, "timestamp": START}))
    assert limit_warning(state, START) is None


def test_the_agent_is_warned_when_money_or_time_runs_out() -> None:
    money = limit_warning(after(1, 0.95), START)
    time = limit_warning(after(1), START + timedelta(seconds=95))
    assert money is not None
    assert time is not None
    assert (money.about, time.about) == ("limit:budget", "limit:time")


def test_the_agent_is_asked_to_clean_up_while_a_tenth_of_the_replies_is_left() -> None:
    limits = RunLimits(max_iterations=250, max_budget=1000)
    assert limit_warning(after(224, limits=limits), START) is None
    state = after(225, limits=limits)
    warning = limit_warning(state, START)
    assert warning is not None
    assert "Only 25 replies are left" in warning.message
    assert "scratch files" in warning.message and "git status" in warning.message
    state.apply(warning.model_copy(update={"id": 300, "timestamp": START}))
    assert limit_warning(state, START) is None


def test_the_last_replies_of_a_long_run_are_announced_once_more() -> None:
    limits = RunLimits(max_iterations=250, max_budget=1000)
    state = after(248, limits=limits)
    last = limit_warning(state, START)
    assert last is not None
    assert "Only 2 replies are left" in last.message and "Call finish now" in last.message
    state.apply(last.model_copy(update={"id": 300, "timestamp": START}))
    assert limit_warning(state, START) is None


def test_a_short_run_is_not_warned_at_its_first_step() -> None:
    assert limit_warning(after(1, limits=RunLimits(max_iterations=3)), START) is None
