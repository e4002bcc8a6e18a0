"""Tests of the step loop: what each action leads to, and how a run ends."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from resolver.agents.base import DummyAgent
from resolver.controller.controller import AgentController, ControllerParts, ConversationCondenser
from resolver.errors import LimitReached, ModelAuthError, RunStopped, SandboxError
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.actions import SandboxAction
from resolver.events.base import ActionBase
from resolver.events.lifecycle import Condensation, LimitsExtended, ModelReplied, Warned
from resolver.events.observations import Observation
from resolver.events.state import State
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream
from resolver.memory.condensers.rules import NoOp
from resolver.memory.condensers.view import LogCondenser
from resolver.models.run import Completion, Outcome, RunLimits, RunState

START = datetime(2026, 1, 1, tzinfo=UTC)


class Sandbox:
    """Answers each command with a given output."""

    def __init__(self, fail: Exception | None = None) -> None:
        self.fail = fail

    def execute(self, action: SandboxAction) -> Observation:
        if self.fail:
            raise self.fail
        return o.CmdOutput(content=f"did {getattr(action, 'command', action.kind)}", exit_code=0)


class Paid(DummyAgent):
    """A scripted agent whose steps cost a dollar each."""

    def __init__(self, actions: Sequence[ActionBase], stream: EventStream) -> None:
        super().__init__(actions)
        self._paid = stream

    def step(self, state: State) -> ActionBase:
        self._paid.add(ModelReplied(completion=Completion(model="m", cost=1.0)))
        return super().step(state)


class Raising(DummyAgent):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def step(self, state: State) -> ActionBase:
        raise self._error


class Forgetful:
    """A condenser that can forget once."""

    def __init__(self) -> None:
        self.left = 1

    def condense(self, state: State) -> Condensation | None:
        wanted = bool(state.events) and isinstance(state.events[-1], a.CondensationRequest)
        if not wanted or not self.left:
            return None
        self.left -= 1
        return Condensation(forgotten=(0,), summary="short")


class Run:
    """One run in memory; `seconds` pass each time the clock is read."""

    def __init__(self, seconds: float = 0.0) -> None:
        ticks = count()
        self.now: Callable[[], datetime] = lambda: START + timedelta(seconds=seconds * next(ticks))
        self.store = MemoryStore()
        self.stream = EventStream(self.store, now=self.now)
        self.state = State()
        self.stream.subscribe("state", self.state.apply, essential=True)

    def go(
        self,
        agent: DummyAgent,
        limits: RunLimits | None = None,
        sandbox: Sandbox | None = None,
        condenser: ConversationCondenser | None = None,
    ) -> Outcome:
        if limits is not None:
            self.stream.add(LimitsExtended(limits=limits))
        parts = ControllerParts(
            sandbox or Sandbox(), lambda _: condenser or LogCondenser(NoOp()), self.now
        )
        controller = AgentController(agent, self.stream, self.state, parts)
        return controller.run()

    def kinds(self) -> list[str]:
        return [event.kind for event in self.store]

    def of(self, kind: type) -> list:
        return [event for event in self.store if isinstance(event, kind)]


def test_an_action_is_answered_by_its_observation_and_finish_ends_the_run() -> None:
    run = Run()
    outcome = run.go(DummyAgent([a.CmdRun(command="ls"), a.Finish(message="all done")]))
    assert run.kinds() == [
        "agent_state_changed", "cmd_run", "cmd_output", "finish", "agent_state_changed",
    ]  # fmt: skip
    assert run.of(o.CmdOutput)[0].cause == run.of(a.CmdRun)[0].id
    assert (outcome.state, outcome.message) == (RunState.FINISHED, "all done")
    assert outcome.task_completed


@pytest.mark.parametrize(
    "action",
    [a.McpCall(server="s", name="n"), a.Delegate(agent="x", task="y")],
)
def test_an_unavailable_action_is_explained_and_does_not_end_the_run(action) -> None:
    run = Run()
    outcome = run.go(DummyAgent([action, a.Finish(message="")]))
    assert run.of(o.ErrorObservation)[0].code == "unavailable"
    assert outcome.state is RunState.FINISHED


def test_an_agent_that_waits_is_asked_to_continue_a_limited_number_of_times() -> None:
    run = Run()
    asking = [a.Message(content=f"what about {w}?", wait_for_response=True) for w in "abcdef"]
    outcome = run.go(DummyAgent(asking))
    assert outcome.state is RunState.AWAITING_USER_INPUT
    assert outcome.reason == outcome.message == "what about d?"
    assert len([m for m in run.of(a.Message) if m.source == "user"]) == 3


def test_the_iteration_limit_ends_the_run_after_that_many_replies() -> None:
    run = Run()
    steps = [a.CmdRun(command=f"step {w}") for w in "abcdefgh"]
    outcome = run.go(Paid(steps, run.stream), RunLimits(max_iterations=5, max_budget=99))
    assert (outcome.state, outcome.limit) == (RunState.LIMIT, "iterations")
    assert outcome.iterations == 5
    assert [w.about for w in run.of(Warned)] == ["limit:iterations"]


def test_a_stuck_agent_is_first_warned_and_then_stopped() -> None:
    run = Run()
    outcome = run.go(DummyAgent([a.CmdRun(command="ls")] * 20))
    assert outcome.state is RunState.STUCK
    assert [w.about for w in run.of(Warned)] == ["stuck"]
    assert len(run.of(a.CmdRun)) == 8


def test_a_conversation_that_does_not_fit_is_condensed_and_continues() -> None:
    run = Run()
    agent = DummyAgent([a.CondensationRequest(), a.Finish(message="ok")])
    outcome = run.go(agent, condenser=Forgetful())
    assert outcome.state is RunState.FINISHED
    assert len(run.of(Condensation)) == 1


def test_a_conversation_that_can_not_shrink_ends_the_run_with_an_error() -> None:
    outcome = Run().go(DummyAgent([a.CondensationRequest()]))
    assert outcome.state is RunState.ERROR
    assert "context" in outcome.reason


@pytest.mark.parametrize(
    ("error", "state", "says"),
    [
        (ModelAuthError("the key was refused", "set LLM_API_KEY"), RunState.ERROR, "LLM_API_KEY"),
        (RunStopped("stopped by SIGTERM"), RunState.STOPPED, "SIGTERM"),
        (LimitReached("budget", "nothing of it is left"), RunState.LIMIT, "of it is left"),
        (ZeroDivisionError("oops"), RunState.ERROR, "an internal error of Resolver"),
    ],
)
def test_an_error_of_the_agent_ends_the_run_and_never_escapes(error, state, says) -> None:
    outcome = Run().go(Raising(error))
    assert outcome.state is state
    assert says in outcome.reason + outcome.next_step


def test_a_lost_sandbox_ends_the_run_with_the_action_in_the_log() -> None:
    run = Run()
    lost = Sandbox(SandboxError("the container was killed", "look at its memory limit"))
    outcome = run.go(DummyAgent([a.CmdRun(command="make")]), sandbox=lost)
    assert outcome.state is RunState.ERROR
    assert "the container was killed" in outcome.reason
    assert list(run.state.pending) == [run.of(a.CmdRun)[0].id]
