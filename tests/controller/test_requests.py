"""Tests of requests of people to an active run."""

import pytest

from resolver.controller.control import Extend, MessageToAgent, Pause, Request, Resume, Stop
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, Source
from resolver.events.state import State
from resolver.models.run import Extension, RunLimits, RunState
from tests.controller.dummy_agent import DummyAgent
from tests.controller.scenario import Scenario, bash, reply

MOST = RunLimits(max_iterations=350, max_budget=9.0, max_time=9000)


class Scripted(DummyAgent):
    """Sends the requests in `at` at the step with that number."""

    def __init__(
        self, scenario: Scenario, at: dict[int, list[Request]], script: list[ActionBase]
    ) -> None:
        super().__init__(script)
        self._scenario = scenario
        self._at = at
        self._step = 0

    def step(self, state: State) -> ActionBase:
        for request in self._at.get(self._step, []):
            self._scenario.control.send(request)
        self._step += 1
        return super().step(state)


WORK: list[ActionBase] = [a.CmdRun(command="one"), a.CmdRun(command="two"), a.Finish(message="ok")]


def run(*requests: Request, script: list[ActionBase] = WORK) -> Scenario:
    scenario = Scenario()
    scenario.go(Scripted(scenario, {0: list(requests)}, script), max_limits=MOST)
    return scenario


def states(scenario: Scenario) -> list[RunState]:
    return [e.state for e in scenario.of(o.AgentStateChanged)]


def test_a_stop_ends_the_run_before_the_next_step_with_who_and_why() -> None:
    scenario = run(Stop(by="maria", reason="wrong issue"))
    assert scenario.state.run_state is RunState.STOPPED
    assert scenario.state.reason == "stopped by maria: wrong issue"
    assert scenario.sandbox.done == ["one"]


@pytest.mark.parametrize(
    "then", [Resume(), MessageToAgent("go on"), Extend(Extension(iterations=1))]
)
def test_a_pause_lasts_until_it_is_resumed(then: Request) -> None:
    scenario = run(Pause(by="maria"), Pause(), then)
    assert states(scenario) == [
        RunState.RUNNING, RunState.PAUSED, RunState.RUNNING, RunState.FINISHED,
    ]  # fmt: skip
    assert scenario.of(o.AgentStateChanged)[1].reason == "paused by maria"
    assert scenario.sandbox.done == ["one", "two"]


def test_a_pause_that_nobody_ends_stops_the_run_and_says_how_to_continue() -> None:
    scenario = Scenario()
    scenario.go(Scripted(scenario, {0: [Pause()]}, WORK), max_pause=0.05)
    assert scenario.state.run_state is RunState.STOPPED
    assert "`continue` continues" in scenario.state.reason


def test_a_stop_ends_a_pause() -> None:
    scenario = run(Pause(), Stop(by="maria"))
    assert states(scenario)[-2:] == [RunState.PAUSED, RunState.STOPPED]


ASK = a.Message(content="Tabs or spaces?\nI can't tell.", wait_for_response=True)


def test_a_persons_answer_precedes_an_automatic_one() -> None:
    scenario = run(MessageToAgent("Tabs."), script=[ASK, a.Finish(message="ok")])
    said = [m.content for m in scenario.of(a.Message) if m.source is Source.USER]
    assert said == ["fix it", "Tabs."]


def test_a_persons_comment_resets_the_count_of_automatic_replies() -> None:
    asking = [a.Message(content=f"{word}?", wait_for_response=True) for word in "abcdefgh"]
    scenario = Scenario()
    agent = Scripted(scenario, {2: [MessageToAgent("As you like.")]}, asking)
    assert scenario.go(agent).reason == "g?"


def test_the_rest_of_the_last_reply_is_executed_before_the_limit_ends_the_run() -> None:
    two_calls = reply(
        ("execute_bash", {"command": "b"}), ("finish", {"title": "Make it", "message": "made it"})
    )
    scenario = Scenario(bash("a"), two_calls, limits=RunLimits(max_iterations=2))
    outcome = scenario.go()
    assert (outcome.state, outcome.message) == (RunState.FINISHED, "made it")
