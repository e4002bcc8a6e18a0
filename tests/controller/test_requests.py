"""Tests of requests of people to an active run."""

import threading

import pytest

from resolver.agents.base import DummyAgent
from resolver.controller.control import Extend, Pause, Request, Resume, Say, Stop
from resolver.controller.controller import MAX_AUTO_REPLIES
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, Source
from resolver.events.lifecycle import LimitsExtended, Warned
from resolver.events.state import State
from resolver.models.run import Extension, RunLimits, RunState
from tests.controller.scene import Scene, bash, finish, reply

MOST = RunLimits(max_iterations=350, max_budget=9.0, max_time=9000)


class Scripted(DummyAgent):
    """Sends the requests in `at` at the step with that number."""

    def __init__(
        self, scene: Scene, at: dict[int, list[Request]], script: list[ActionBase]
    ) -> None:
        super().__init__(script)
        self._scene = scene
        self._at = at
        self._step = 0

    def step(self, state: State) -> ActionBase:
        for request in self._at.get(self._step, []):
            self._scene.control.send(request)
        self._step += 1
        return super().step(state)


WORK: list[ActionBase] = [a.CmdRun(command="one"), a.CmdRun(command="two"), a.Finish(message="ok")]


def run(*requests: Request, script: list[ActionBase] = WORK) -> Scene:
    scene = Scene()
    scene.go(Scripted(scene, {0: list(requests)}, script), most=MOST)
    return scene


def states(scene: Scene) -> list[RunState]:
    return [e.state for e in scene.of(o.AgentStateChanged)]


def test_a_stop_ends_the_run_before_the_next_step_with_who_and_why() -> None:
    scene = run(Stop(by="maria", reason="wrong issue"))
    assert scene.state.run_state is RunState.STOPPED
    assert scene.state.reason == "stopped by maria: wrong issue"
    assert scene.sandbox.done == ["one"]


def test_a_stop_of_the_machines_operator_has_no_name() -> None:
    assert run(Stop()).state.reason == "stopped on request"


@pytest.mark.parametrize("then", [Resume(), Say("go on"), Extend(Extension(iterations=1))])
def test_a_pause_lasts_until_it_is_resumed(then: Request) -> None:
    scene = run(Pause(by="maria"), Pause(), then)
    assert states(scene) == [
        RunState.RUNNING, RunState.PAUSED, RunState.RUNNING, RunState.FINISHED,
    ]  # fmt: skip
    assert scene.of(o.AgentStateChanged)[1].reason == "paused by maria"
    assert scene.sandbox.done == ["one", "two"]


def test_a_pause_can_be_ended_from_another_thread() -> None:
    scene = Scene()
    agent = Scripted(scene, {0: [Pause()]}, WORK)
    timer = threading.Timer(0.05, scene.control.send, [Resume()])
    timer.start()
    assert scene.go(agent, max_pause=30).state is RunState.FINISHED
    timer.join()


def test_a_pause_that_nobody_ends_stops_the_run_and_says_how_to_continue() -> None:
    scene = Scene()
    scene.go(Scripted(scene, {0: [Pause()]}, WORK), max_pause=0.05)
    assert scene.state.run_state is RunState.STOPPED
    assert "`continue` continues" in scene.state.reason


def test_a_stop_ends_a_pause() -> None:
    scene = run(Pause(), Stop(by="maria"))
    assert states(scene)[-2:] == [RunState.PAUSED, RunState.STOPPED]


def test_resuming_without_a_pause_has_no_effect() -> None:
    assert states(run(Resume())) == [RunState.RUNNING, RunState.FINISHED]


def test_comments_reach_the_agent_as_messages_of_the_user() -> None:
    scene = run(Say("use tabs", by="maria"))
    [_, said] = [m for m in scene.of(a.Message) if m.source is Source.USER]
    assert (said.content, said.cause) == ("use tabs", None)


ASK = a.Message(content="Tabs or spaces?\nI can't tell.", wait_for_response=True)


def test_a_question_is_in_the_log_and_an_automatic_reply_follows() -> None:
    scene = run(script=[ASK, a.Finish(message="ok")])
    assert states(scene) == [
        RunState.RUNNING, RunState.AWAITING_USER_INPUT, RunState.RUNNING, RunState.FINISHED,
    ]  # fmt: skip
    assert scene.of(o.AgentStateChanged)[1].reason == "Tabs or spaces?"


def test_a_persons_answer_precedes_an_automatic_one() -> None:
    scene = run(Say("Tabs."), script=[ASK, a.Finish(message="ok")])
    said = [m.content for m in scene.of(a.Message) if m.source is Source.USER]
    assert said == ["fix it", "Tabs."]


def test_a_stop_reaches_a_run_that_waits() -> None:
    assert run(Stop(), script=[ASK]).state.run_state is RunState.STOPPED


def test_unanswered_questions_end_the_run_with_the_last_of_them() -> None:
    scene = Scene()
    outcome = scene.go(
        DummyAgent([ASK] * 2 + [a.Message(content="Why?\nReally.", wait_for_response=True)] * 9)
    )
    assert outcome.state is RunState.AWAITING_USER_INPUT
    assert (outcome.reason, outcome.message) == ("Why?", "Why?\nReally.")
    assert len(scene.of(a.Message)) == 1 + 2 * MAX_AUTO_REPLIES + 1


def test_a_persons_comment_resets_the_count_of_automatic_replies() -> None:
    asking = [a.Message(content=f"{word}?", wait_for_response=True) for word in "abcdefgh"]
    scene = Scene()
    agent = Scripted(scene, {2: [Say("As you like.")]}, asking)
    assert scene.go(agent).reason == "g?"


def test_an_extension_is_granted_and_the_agent_is_told() -> None:
    scene = Scene(
        *[bash(f"look {w}") for w in "abcd"], finish(), limits=RunLimits(max_iterations=3)
    )
    scene.control.send(Extend(Extension(iterations=10, budget=1.5), by="maria"))
    assert scene.go(most=MOST).state is RunState.FINISHED
    granted = scene.of(LimitsExtended)[-1]
    assert (granted.limits.max_iterations, granted.limits.max_budget) == (13, 6.5)
    assert granted.by == "maria"
    [told] = [w for w in scene.of(Warned) if w.about == "extended"]
    assert told.to_agent
    assert "10 more replies, $1.50 more." in told.message


def test_an_extension_beyond_the_maximum_is_reduced_and_reported() -> None:
    scene = run(Extend(Extension(iterations=10**6), by="maria"))
    assert scene.state.limits.max_iterations == MOST.max_iterations
    [cut] = [w for w in scene.of(Warned) if w.about == "extension_cut"]
    assert "by maria" in cut.message
    assert "350 iterations" in cut.message


def test_a_maximum_below_the_limits_reduces_nothing() -> None:
    scene = run(Extend(Extension(time=60)))
    assert scene.state.limits == RunLimits(max_time=3660)
    again = run(Extend(Extension(time=10**6)), Extend(Extension(time=60)))
    assert again.state.limits.max_time == MOST.max_time
    assert len(again.of(LimitsExtended)) == 1


def test_an_extension_of_nothing_and_a_negative_one_change_nothing() -> None:
    scene = run(Extend(Extension()), Extend(Extension(iterations=-50, budget=-9, time=-9)))
    assert not scene.of(LimitsExtended)
    assert not scene.of(Warned)


def test_the_last_warning_comes_again_after_an_extension() -> None:
    scene = Scene(limits=RunLimits(max_iterations=100, max_time=10), seconds=0.2)
    work = [a.CmdRun(command=f"work {chr(97 + i)}") for i in range(26)] * 9
    agent = Scripted(scene, {10: [Extend(Extension(time=10))]}, work)
    assert scene.go(agent).state is RunState.LIMIT
    assert [w.about for w in scene.of(Warned)] == ["limit:time", "extended", "limit:time"] or [
        w.about for w in scene.of(Warned)
    ] == ["extended", "limit:time"]


def test_the_rest_of_the_last_reply_is_executed_before_the_limit_ends_the_run() -> None:
    both = reply(("execute_bash", {"command": "b"}), ("finish", {"message": "made it"}))
    scene = Scene(bash("a"), both, limits=RunLimits(max_iterations=2))
    outcome = scene.go()
    assert (outcome.state, outcome.message) == (RunState.FINISHED, "made it")
