"""Tests of delegates: they work in the parent's log, with a share of its limits."""

import pytest

from resolver.agents.base import Agent
from resolver.controller.control import Extend, Pause, Request, Resume, Stop
from resolver.controller.delegation import nested_events
from resolver.errors import ModelError
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.lifecycle import DelegateEvent, LimitsExtended
from resolver.events.stream import EventStream
from resolver.models.run import Extension, RunLimits, RunState
from tests.controller.scenario import Scenario, bash, finish, hand_on
from tests.controller.test_controller import Raising
from tests.controller.test_requests import Scripted

LIMITS = RunLimits(max_iterations=21, max_budget=4.0, max_time=1000)


def test_a_delegate_works_in_the_same_log_and_returns_its_message() -> None:
    scenario = Scenario(
        hand_on("count files"), bash("ls"), finish("there are 3"), finish("all done")
    )
    outcome = scenario.go(delegates=scenario.delegate)
    assert (outcome.state, outcome.message) == (RunState.FINISHED, "all done")
    [delegated] = scenario.of(a.Delegate)
    [result] = scenario.of(o.DelegateResult)
    assert result.cause == delegated.id
    assert result.state is RunState.FINISHED
    assert "there are 3" in result.content
    assert {e.delegate for e in scenario.of(DelegateEvent)} == {delegated.id}
    child = list(nested_events(scenario.store, delegated.id))
    assert [e.id for e in child] == list(range(len(child)))
    assert "count files" in next(e for e in child if isinstance(e, a.Message)).content
    assert scenario.sandbox.done == ["ls"]


def test_a_delegate_that_uses_up_its_share_leaves_the_rest_to_its_parent() -> None:
    endless = [bash(f"look {word}") for word in "abcdefghij"]
    scenario = Scenario(hand_on(), *endless, finish("I did it myself"), limits=LIMITS)
    outcome = scenario.go(delegates=scenario.delegate)
    assert scenario.of(o.DelegateResult)[0].state is RunState.LIMIT
    assert outcome.message == "I did it myself"


def test_with_too_little_left_no_delegate_starts() -> None:
    scenario = Scenario(hand_on(), finish(), limits=RunLimits(max_iterations=6))
    assert scenario.go(delegates=scenario.delegate).state is RunState.FINISHED
    assert "Too little is left" in scenario.of(o.ErrorObservation)[0].content
    assert not scenario.of(DelegateEvent)


def test_delegating_too_deeply_is_refused_with_the_level() -> None:
    scenario = Scenario(hand_on(), hand_on(), hand_on("too deep"), finish(), finish(), finish())

    def offered(name: str, stream: EventStream, *, may_delegate: bool) -> Agent:
        return scenario.delegate(name, stream, may_delegate=True)

    assert scenario.go(delegates=offered).state is RunState.FINISHED
    [error] = scenario.nested(o.ErrorObservation)
    assert "2 levels below" in error.content


@pytest.mark.parametrize("error", [ModelError("no answer"), ZeroDivisionError("oops")])
def test_a_failing_delegate_does_not_end_its_parent(error: Exception) -> None:
    def make(name: str, stream: EventStream, *, may_delegate: bool) -> Agent:
        return Raising(error)

    scenario = Scenario(hand_on(), finish("went on"))
    outcome = scenario.go(delegates=make)
    [result] = scenario.of(o.DelegateResult)
    assert result.state is RunState.ERROR
    assert str(error) in result.content
    assert outcome.message == "went on"


def with_requests(*requests: Request) -> Scenario:
    scenario = Scenario(hand_on(), finish("went on"), limits=LIMITS)
    script = [a.CmdRun(command="ls"), a.Finish(message="child")]

    def make(name: str, stream: EventStream, *, may_delegate: bool) -> Agent:
        return Scripted(scenario, {0: list(requests)}, script)

    scenario.go(
        delegates=make, max_limits=RunLimits(max_iterations=30, max_budget=9, max_time=2000)
    )
    return scenario


def test_a_stop_ends_the_delegate_and_its_parent() -> None:
    scenario = with_requests(Stop(by="maria", reason="wrong issue"))
    assert scenario.of(o.DelegateResult)[0].state is RunState.STOPPED
    assert scenario.state.run_state is RunState.STOPPED
    assert scenario.state.reason == "stopped by maria: wrong issue"


def test_a_pause_is_in_both_logs_and_its_time_counts_for_neither() -> None:
    scenario = with_requests(Pause(by="maria"), Resume())
    own = [e.state for e in scenario.of(o.AgentStateChanged)]
    states = [e.state for e in scenario.nested(o.AgentStateChanged)]
    assert own.count(RunState.PAUSED) == 1
    assert states.count(RunState.PAUSED) == 2
    assert scenario.state.run_state is RunState.FINISHED


def test_an_extension_applies_to_the_run_and_to_the_active_delegate() -> None:
    scenario = with_requests(Extend(Extension(iterations=20), by="maria"))
    assert scenario.state.limits.max_iterations == 30
    granted = [e.limits.max_iterations for e in scenario.nested(LimitsExtended)]
    assert granted == [21, 10, 30, 19]
