"""Tests of the limits of a run: when they end it, and when the agent is warned."""

from datetime import UTC, datetime, timedelta

import pytest

from resolver.controller.limits import (
    check_limits,
    delegate_limits,
    derive_outcome,
    extend_limits,
    extension_events,
    limit_warning,
)
from resolver.errors import LimitReached
from resolver.events.actions import Message
from resolver.events.base import Source
from resolver.events.lifecycle import LimitsExtended, ModelReplied, Warned
from resolver.events.observations import AgentStateChanged
from resolver.events.state import State
from resolver.models.run import Completion, Extension, RunLimits, RunState

START = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = RunLimits(max_iterations=10, max_budget=1.0, max_time=100)


def after(replies: int, cost: float = 0.0, limits: RunLimits = LIMITS) -> State:
    reply = Completion(model="m", cost=cost)
    state = State.fold([LimitsExtended(id=0, timestamp=START, limits=limits)])
    for i in range(replies):
        state.apply(ModelReplied(id=i + 1, timestamp=START, completion=reply))
    return state


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


def test_limits_grow_by_what_is_asked_for_up_to_the_most_that_is_allowed() -> None:
    more = Extension(iterations=5, budget=0.5, time=50.0)
    assert extend_limits(LIMITS, more, None) == RunLimits(
        max_iterations=15, max_budget=1.5, max_time=150
    )
    most = RunLimits(max_iterations=12, max_budget=1.2, max_time=120)
    assert extend_limits(LIMITS, more, most) == most
    least = RunLimits(max_iterations=1, max_budget=0.1, max_time=1)
    assert extend_limits(LIMITS, more, least) == LIMITS, "never less than before"
    nothing = Extension(iterations=-5, budget=-0.5, time=-50.0)
    assert extend_limits(LIMITS, nothing, None) == LIMITS


def test_an_extension_is_an_event_and_a_message_and_a_cut_one_a_warning_too() -> None:
    more = Extension(iterations=5, budget=0.5, time=50.0)
    extended, result = extension_events(LIMITS, more, None, by="ada")
    assert isinstance(extended, LimitsExtended) and extended.limits.max_iterations == 15
    assert isinstance(result, Warned) and result.to_agent and "5" in result.message
    most = RunLimits(max_iterations=12, max_budget=2, max_time=200)
    cut, *_ = extension_events(LIMITS, more, most, by="ada")
    assert isinstance(cut, Warned) and cut.about == "extension_cut" and not cut.to_agent
    assert [e.about for e in extension_events(LIMITS, more, LIMITS, by="ada")] == ["extension_cut"]
    assert extension_events(LIMITS, Extension(), None, by="ada") == ()


def test_a_delegate_gets_half_of_what_is_left_and_nothing_of_too_little() -> None:
    now = START + timedelta(seconds=20)
    shared = delegate_limits(after(2, 0.1), now)
    assert shared is not None
    assert (shared.max_iterations, shared.max_time) == (4, 40)
    assert shared.max_budget == pytest.approx(0.4)
    assert delegate_limits(after(8), now) is None
    assert delegate_limits(after(2, 0.5), now) is None
    assert delegate_limits(after(2), START + timedelta(seconds=100)) is None


def test_an_outcome_names_the_limit_only_of_a_run_that_reached_one() -> None:
    def ended(state: RunState, replies: int) -> State:
        changed = AgentStateChanged(id=99, timestamp=START, state=state)
        found = after(replies)
        found.apply(changed)
        return found

    assert derive_outcome(ended(RunState.LIMIT, 10)).limit == "iterations"
    assert derive_outcome(ended(RunState.LIMIT, 2)).limit == "budget"
    assert derive_outcome(ended(RunState.ERROR, 10)).limit is None


def test_the_question_of_a_run_is_the_agents_last_message_not_the_users() -> None:
    state = after(1)
    asked = Message(id=7, timestamp=START, content="which?", source=Source.AGENT)
    state.apply(asked)
    state.apply(Message(id=8, timestamp=START, content="hello", source=Source.USER))
    state.apply(AgentStateChanged(id=9, timestamp=START, state=RunState.AWAITING_USER_INPUT))
    assert derive_outcome(state).message == "which?"
