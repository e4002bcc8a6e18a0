"""Tests of continuing a run that was killed after any event."""

from collections.abc import Sequence

import pytest

from resolver.controller.recovery import unanswered_actions
from resolver.errors import SandboxLost
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.actions import SandboxAction
from resolver.events.base import ActionBase, EventBase, Source
from resolver.events.lifecycle import Condensation, Resumed, Warned
from resolver.events.log import Event
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.memory.condensers.rules import ConversationWindow
from resolver.memory.condensers.view import LogCondenser
from resolver.models.run import Completion, PlanItem, RunLimits, RunState
from tests.controller.dummy_agent import DummyAgent
from tests.controller.scenario import (
    Sandbox,
    Scenario,
    all_events,
    bash,
    finish,
    hand_on,
    recorded_content,
    reply,
)

REPLIES: tuple[Completion, ...] = (
    reply(("plan", {"items": ["look", "fix"]}), ("execute_bash", {"command": "ls"})),
    bash("grep a", "grep b", "grep c"),
    reply(("think", {"thought": "hm"})),
    reply(("execute_bsh", {"command": "typo"})),
    reply(("str_replace_editor", {"command": "create", "path": "x.py", "file_text": "1"})),
    hand_on("find the callers"),
    bash("rg parse"),
    reply(("think", {"thought": "deeper"})),
    hand_on("and theirs"),
    bash("rg main"),
    finish("main calls it"),
    reply(text="Shall I go on?"),
    finish("two callers"),
    reply(text="Tabs or spaces?"),
    *[bash("pytest")] * 2,
    reply(("execute_ipython_cell", {"code": "1 + 1"})),
    reply(
        ("execute_bash", {"command": "git diff"}),
        ("finish", {"title": "Fix it", "message": "fixed"}),
    ),
)


ALONE = REPLIES[:5] + REPLIES[14:]
"""The same without delegates."""


def done_in(events: Sequence[Event]) -> int:
    """Return the sandbox actions with an observation in the log."""
    pending: dict[int, EventBase] = {}
    done = 0
    for event in all_events(events):
        if isinstance(event, SandboxAction):
            pending[event.id] = event
        elif isinstance(event, o.ObservationBase) and event.cause in pending:
            del pending[event.cause]
            done += 1
    return done


def test_a_run_cut_off_after_any_event_has_the_same_result() -> None:
    def condensers(_: EventStream) -> LogCondenser:
        return LogCondenser(ConversationWindow(keep_first=1, keep_last=2), lambda: 150)

    uncut = Scenario(*REPLIES, limits=RunLimits(max_iterations=60))
    outcome = uncut.go(delegates=uncut.delegate, condensers=condensers)
    assert (outcome.state, outcome.message) == (RunState.FINISHED, "fixed")
    events = list(uncut.store)
    assert len(events) > 70 and uncut.of(Condensation)
    for length in range(1, len(events) + 1):
        scenario = Scenario(*REPLIES, earlier=events[:length])
        outcome = scenario.go(delegates=scenario.delegate, condensers=condensers)
        assert (outcome.state, outcome.message) == (RunState.FINISHED, "fixed"), length
        assert recorded_content(list(scenario.store)) == recorded_content(events), length
        executed = len(scenario.sandbox.done) + done_in(events[:length])
        assert executed == len(uncut.sandbox.done), length


@pytest.mark.parametrize(
    "limits",
    [RunLimits(max_iterations=7), RunLimits(max_budget=0.75)],
    ids=["iterations", "budget"],
)
def test_a_run_that_ends_at_a_limit_ends_there_from_any_event(limits: RunLimits) -> None:
    uncut = Scenario(*ALONE, limits=limits)
    ended = uncut.go(delegates=uncut.delegate)
    assert ended.state is RunState.LIMIT
    events = list(uncut.store)
    for length in range(2, len(events) + 1):
        scenario = Scenario(*ALONE, earlier=events[:length])
        outcome = scenario.go(delegates=scenario.delegate)
        assert (outcome.state, outcome.limit) == (ended.state, ended.limit), length
        assert recorded_content(list(scenario.store)) == recorded_content(events), length


SCRIPT: list[ActionBase] = [
    a.CmdRun(command="ls"),
    a.PlanUpdate(items=(PlanItem(title="x"),)),
    a.Message(content="hello"),
    a.Recall(query="x"),
    a.Think(content="hm"),
    a.Reject(reason="no bug"),
]


@pytest.mark.parametrize(
    ("replies", "script", "state"),
    [
        ([bash("ls", "ls")] * 20, None, RunState.STUCK),
        ([reply(text=f"{word}?") for word in "abcd"], None, RunState.AWAITING_USER_INPUT),
        ([], SCRIPT, RunState.REJECTED),
    ],
    ids=["stuck", "unanswered questions", "other actions"],
)
def test_a_run_that_ended_in_another_state_ends_there_from_any_event(
    replies: list[Completion], script: list[ActionBase] | None, state: RunState
) -> None:
    def go(scenario: Scenario) -> RunState:
        return scenario.go(DummyAgent(script) if script else None).state

    uncut = Scenario(*replies)
    assert go(uncut) is state
    events = list(uncut.store)
    for length in range(1, len(events) + 1):
        scenario = Scenario(*replies, earlier=events[:length])
        assert go(scenario) is state, length
        assert recorded_content(list(scenario.store)) == recorded_content(events), length


def test_external_actions_are_not_repeated_and_the_agent_is_informed() -> None:
    action = a.McpCall(server="s", name="create_ticket")
    running = o.AgentStateChanged(id=0, state=RunState.RUNNING)
    scenario = Scenario(earlier=[running, action.model_copy(update={"id": 1})])
    scenario.go(DummyAgent([action, a.Finish(message="ok")]))
    [error] = scenario.of(o.ErrorObservation)
    assert (error.cause, error.code) == (1, "interrupted")
    assert "not known whether it took effect" in error.content


def test_unfinished_actions_of_others_are_not_executed() -> None:
    setup = a.CmdRun(id=0, command="make deps", source=Source.ENVIRONMENT)
    assert unanswered_actions(State.fold([setup])) == ()


ENDED = [
    RunState.FINISHED, RunState.REJECTED, RunState.ERROR, RunState.STOPPED, RunState.STUCK,
    RunState.LIMIT,
]  # fmt: skip


@pytest.mark.parametrize("state", ENDED)
def test_an_ended_run_returns_its_outcome_at_once(state: RunState) -> None:
    scenario = Scenario(earlier=[o.AgentStateChanged(id=0, state=state, reason="so it was")])
    outcome = scenario.go(DummyAgent([a.CmdRun(command="no")]))
    assert (outcome.state, outcome.reason) == (state, "so it was")
    assert len(scenario.store) == 1


@pytest.mark.parametrize("state", [*ENDED, RunState.AWAITING_USER_INPUT])
def test_an_ended_run_continues_when_set_to_running(state: RunState) -> None:
    first = Scenario(bash("one"), reply(("execute_bash", {"command": "two"})), finish("now done"))
    first.stream.add(o.AgentStateChanged(state=state))
    scenario = Scenario(bash("one"), finish("now done"), earlier=list(first.store))
    scenario.stream.add(Resumed(version="1", run="r2"))
    scenario.stream.add(a.Message(content="please go on", source=Source.USER))
    scenario.stream.add(o.AgentStateChanged(state=RunState.RUNNING))
    outcome = scenario.go()
    assert (outcome.state, outcome.message) == (RunState.FINISHED, "now done")
    assert scenario.sandbox.done == ["one"]


def test_time_without_a_process_does_not_count_for_the_delegate() -> None:
    uncut = Scenario(*REPLIES)
    uncut.go(delegates=uncut.delegate)
    events = list(uncut.store)
    cut = next(i for i, e in enumerate(events) if e.kind == "delegate_event") + 12
    late = [e.model_copy(update={"timestamp": e.timestamp.replace(year=2025)}) for e in events]
    scenario = Scenario(*REPLIES, earlier=late[:cut])
    scenario.stream.add(Resumed(version="1", run="r"))
    assert scenario.go(delegates=scenario.delegate).state is RunState.FINISHED
    assert [r.state for r in scenario.of(o.DelegateResult)] == [RunState.FINISHED]
    assert len(scenario.nested(Resumed)) == 2


class FragileSandbox(Sandbox):
    """A sandbox that ends when it executes a command with `die`, `lives` times."""

    def __init__(self, lives: int) -> None:
        super().__init__()
        self.lives = lives

    def execute(self, action: SandboxAction) -> o.Observation:
        observation = super().execute(action)
        if "die" in self.done[-1] and self.lives > 0:
            self.lives -= 1
            raise SandboxLost("the sandbox was lost: it was killed")
        return observation


@pytest.mark.parametrize("delegated", [False, True])
@pytest.mark.parametrize(("lives", "repeated"), [(1, True), (9, False)])
def test_an_action_that_keeps_ending_its_sandbox_is_reported_to_the_agent(
    delegated: bool, lives: int, repeated: bool
) -> None:
    """The first time, it is repeated in the next sandbox, as after a kill of the run."""
    replies = (bash("ls"), bash("die"), bash("make"), finish("done"))
    if delegated:
        replies = (hand_on("look"), *replies, finish("all done"))
    sandbox = FragileSandbox(lives)
    events: Sequence[Event] = ()
    losses = 0
    while True:  # as `execute` does, with a new sandbox for each controller
        scenario = Scenario(*replies, earlier=events)
        scenario.sandbox = sandbox
        try:
            outcome = scenario.go(delegates=scenario.delegate)
        except SandboxLost:
            events, losses = list(scenario.store), losses + 1
        else:
            break
    assert losses == (1 if repeated else 2)
    assert outcome.state is RunState.FINISHED
    assert sandbox.done == ["ls", "die", "die", "make"]
    codes = [event.code for event in scenario.nested(o.ErrorObservation)]
    assert codes == ([] if repeated else ["sandbox_lost"])
    warnings = [w.message for w in scenario.nested(Warned) if w.about == "sandbox_lost"]
    assert warnings == ["the sandbox was lost: it was killed"] * losses
