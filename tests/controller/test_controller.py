"""Tests of the step loop: what each action leads to, and how a run ends."""

import pytest

from resolver.errors import LimitReached, ModelAuthError, ModelError, RunStopped, SandboxError
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.actions import SandboxAction
from resolver.events.base import ActionBase
from resolver.events.lifecycle import Condensation, Warned
from resolver.events.observations import Observation
from resolver.events.state import State
from resolver.memory.condensers.rules import ConversationWindow
from resolver.memory.condensers.view import LogCondenser
from resolver.models.run import DeclineReason, Outcome, RunLimits, RunState
from tests.controller.dummy_agent import DummyAgent
from tests.controller.scenario import Sandbox, Scenario, bash


class Raising(DummyAgent):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def step(self, state: State) -> ActionBase:
        raise self._error


class LostSandbox(Sandbox):
    def execute(self, action: SandboxAction) -> Observation:
        raise SandboxError("the container was killed", "look at its memory limit")


def ended(*script: ActionBase) -> Outcome:
    return Scenario().go(DummyAgent(script))


def test_an_action_is_answered_by_its_observation_and_finish_ends_the_run() -> None:
    run = Scenario()
    outcome = run.go(DummyAgent([a.CmdRun(command="ls"), a.Finish(message="all done")]))
    assert [event.kind for event in run.store][2:] == [
        "agent_state_changed", "cmd_run", "cmd_output", "finish", "agent_state_changed",
    ]  # fmt: skip
    assert run.of(o.CmdOutput)[0].cause == run.of(a.CmdRun)[0].id
    assert (outcome.state, outcome.message) == (RunState.FINISHED, "all done")
    assert outcome.task_completed


@pytest.mark.parametrize(
    "action", [a.McpCall(server="s", name="n"), a.Delegate(agent="x", task="y")]
)
def test_an_unavailable_action_is_explained_and_does_not_end_the_run(action: ActionBase) -> None:
    run = Scenario()
    outcome = run.go(DummyAgent([action, a.Finish(message="")]))
    assert run.of(o.ErrorObservation)[0].code == "unavailable"
    assert outcome.state is RunState.FINISHED


def test_an_agent_that_waits_is_asked_to_continue_a_limited_number_of_times() -> None:
    run = Scenario()
    asking = [a.Message(content=f"what about {w}?", wait_for_response=True) for w in "abcdef"]
    outcome = run.go(DummyAgent(asking))
    assert outcome.state is RunState.AWAITING_USER_INPUT
    assert outcome.reason == outcome.message == "what about d?"
    assert len([m for m in run.of(a.Message) if m.source == "user" and m.cause]) == 3


def test_the_iteration_limit_ends_the_run_after_that_many_replies() -> None:
    steps = [bash(f"step {word}") for word in "abcdefgh"]
    run = Scenario(*steps, limits=RunLimits(max_iterations=5, max_budget=99))
    outcome = run.go()
    assert (outcome.state, outcome.limit) == (RunState.LIMIT, "iterations")
    assert outcome.iterations == 5
    assert [w.about for w in run.of(Warned)] == ["limit:iterations"]


def test_a_stuck_agent_is_first_warned_and_then_stopped() -> None:
    run = Scenario()
    outcome = run.go(DummyAgent([a.CmdRun(command="ls")] * 20))
    assert outcome.state is RunState.STUCK
    assert [w.about for w in run.of(Warned)] == ["stuck"]
    assert len(run.of(a.CmdRun)) == 8


def test_a_conversation_that_does_not_fit_is_condensed_or_ends_the_run() -> None:
    script = [a.CmdRun(command="ls"), a.CmdRun(command="pwd"), a.CondensationRequest()]
    run = Scenario()
    window = LogCondenser(ConversationWindow(keep_first=0, keep_last=1))
    outcome = run.go(DummyAgent([*script, a.Finish(message="ok")]), condensers=lambda _: window)
    assert outcome.state is RunState.FINISHED
    assert len(run.of(Condensation)) == 1
    failed = ended(*script)
    assert failed.state is RunState.ERROR and "context" in failed.reason


@pytest.mark.parametrize(
    ("error", "state", "says"),
    [
        (ModelAuthError("the key was refused", "set LLM_API_KEY"), RunState.ERROR, "LLM_API_KEY"),
        (RunStopped("stopped by SIGTERM"), RunState.STOPPED, "SIGTERM"),
        (LimitReached("budget", "nothing of it is left"), RunState.LIMIT, "of it is left"),
        (ZeroDivisionError("oops"), RunState.ERROR, "an internal error of Resolver"),
    ],
)
def test_an_error_of_the_agent_ends_the_run_and_never_escapes(
    error: Exception, state: RunState, says: str
) -> None:
    outcome = Scenario().go(Raising(error))
    assert outcome.state is state
    assert says in f"{outcome.reason} {outcome.next_step}"


def test_a_lost_sandbox_ends_the_run_with_the_action_in_the_log() -> None:
    run = Scenario()
    run.sandbox = LostSandbox()
    outcome = run.go(DummyAgent([a.CmdRun(command="make")]))
    assert outcome.state is RunState.ERROR
    assert outcome.reason and "the container was killed" in outcome.reason
    assert list(run.state.pending) == [run.of(a.CmdRun)[0].id]


@pytest.mark.parametrize(
    ("declined", "state"),
    [
        ("cannot_reproduce", RunState.REJECTED),
        ("already_fixed", RunState.REJECTED),
        ("not_wanted", RunState.REJECTED),
        ("needs_answer", RunState.AWAITING_USER_INPUT),
        ("answered", RunState.FINISHED),
    ],
)
def test_a_reason_to_change_nothing_decides_the_end_state(
    declined: DeclineReason, state: RunState
) -> None:
    completed = declined == "answered"
    finish = a.Finish(message="Which one?\n\nOr both?", task_completed=completed, declined=declined)
    outcome = ended(finish)
    assert (outcome.state, outcome.declined, outcome.reason) == (state, declined, "Which one?")
    assert outcome.message == finish.message and outcome.task_completed is completed


def test_an_outcome_has_the_error_of_the_last_time() -> None:
    run = Scenario()
    for error in (
        ModelError("it is empty", "add credit", "no_credit"),
        ModelError("no reply", "try again later", "provider_down"),
    ):
        outcome = run.go(Raising(error))
        assert (outcome.state, outcome.reason) == (RunState.ERROR, error.what)
        assert (outcome.because, outcome.next_step) == (error.cause, error.next_step)
        run.stream.add(o.AgentStateChanged(state=RunState.RUNNING))
