"""Tests of the state, which is a deterministic fold over the events."""

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given

from resolver.events.actions import CmdRun, Delegate, FileEdit, Think
from resolver.events.lifecycle import DelegateEvent, ModelReplied, Resumed
from resolver.events.log import dump_line
from resolver.events.observations import (
    AgentStateChanged,
    ChangedPaths,
    CmdOutput,
    DelegateResult,
    FileEditResult,
)
from resolver.events.state import State
from resolver.models.run import Completion, RunState, Tokens
from tests.events.strategies import logs

START = datetime(2026, 1, 1, tzinfo=UTC)


def numbered(*events):
    return [e.model_copy(update={"id": i}) for i, e in enumerate(events)]


@given(logs(max_size=12))
def test_the_same_log_gives_the_same_state_and_a_prefix_the_state_at_that_time(events) -> None:
    running, all_of_it = State(), State.fold(events)
    for i, event in enumerate(events):
        running.apply(event)
        assert vars(running) == vars(State.fold(events[: i + 1]))
    assert vars(running) == vars(all_of_it)


def test_cost_tokens_and_iterations_come_from_the_replies() -> None:
    reply = Completion(model="m", tokens=Tokens(input=10, output=2, cached=5), cost=0.5)
    state = State.fold(numbered(ModelReplied(completion=reply), ModelReplied(completion=reply)))
    assert (state.iterations, state.cost) == (2, 1.0)
    assert state.tokens == Tokens(input=20, output=4, cached=10)


def test_one_unknown_price_makes_the_cost_unknown_but_not_the_known_part() -> None:
    replies = [ModelReplied(completion=Completion(model="m", cost=c)) for c in (0.5, None)]
    state = State.fold(numbered(*replies))
    assert state.cost is None
    assert state.priced == 0.5


def test_a_command_is_kept_with_its_exit_code_and_an_edit_with_its_path() -> None:
    state = State.fold(
        numbered(
            CmdRun(command="pytest -q"),
            CmdOutput(cause=0, exit_code=1, content="1 failed"),
            FileEdit(command="insert", path="a.py", insert_line=0, new_str="x"),
            FileEditResult(cause=2, path="a.py", changed=ChangedPaths(paths=("a.py",))),
        )
    )
    assert [(c.command, c.exit_code) for c in state.commands] == [("pytest -q", 1)]
    assert state.files_touched == ["a.py"]
    assert not state.pending


def nested(delegate: int, event, depth: int = 1) -> DelegateEvent:
    data = json.loads(dump_line(event))
    for _ in range(depth - 1):
        data = {"kind": "delegate_event", "delegate": 0, "event": data}
    return DelegateEvent(delegate=delegate, event=data)


def test_work_of_delegates_counts_for_the_run_at_any_depth() -> None:
    reply = ModelReplied(completion=Completion(model="m", tokens=Tokens(input=7), cost=0.5))
    deep = ChangedPaths(paths=("deep.py",))
    state = State()
    for event in numbered(
        Delegate(agent="x", task="t"),
        nested(0, reply),
        nested(0, Delegate(agent="y", task="u")),
        nested(0, reply, depth=2),
        nested(0, FileEditResult(path="deep.py", changed=deep), depth=2),
        nested(0, CmdRun(id=4, command="make test"), depth=2),
        nested(0, CmdRun(id=4, command="elsewhere")),
        nested(0, CmdOutput(cause=4, exit_code=2, content="red"), depth=2),
        nested(0, DelegateResult()),
        DelegateResult(cause=0),
    ):
        state.apply(event)
    assert (state.iterations, state.cost, state.tokens.input) == (2, 1.0, 14)
    assert state.files_touched == ["deep.py"]
    assert [(c.command, c.exit_code, c.event_id) for c in state.commands] == [("make test", 2, 7)]


def test_the_files_that_differ_are_those_of_the_last_report_also_of_a_delegate() -> None:
    state = State()
    assert state.changed_files is None
    two = ChangedPaths(paths=("a.py", "b.py"), count=2, differing=2)
    edited = ChangedPaths(paths=("a.py",), count=1, differing=2)
    third = ChangedPaths(paths=("c",), count=1, differing=3)
    for event, count in (
        (CmdOutput(), None),
        (CmdOutput(changed=two), 2),
        (FileEditResult(path="/workspace/a.py", changed=edited), 2),
        (nested(0, CmdOutput(cause=4, changed=third)), 3),
        (CmdOutput(changed=ChangedPaths(differing=1)), 1),
        (CmdOutput(), 1),
    ):
        state.apply(event)
        assert state.changed_files == count
    assert state.files_touched == ["a.py", "b.py", "c"]


def test_time_without_a_process_or_in_a_pause_does_not_count() -> None:
    def at(seconds: int, event):
        return event.model_copy(update={"timestamp": START + timedelta(seconds=seconds)})

    state = State.fold(
        numbered(
            at(0, AgentStateChanged(state=RunState.RUNNING)),
            at(10, Think(content="x")),
            at(1000, Resumed(version="1", run="r")),
            at(1005, AgentStateChanged(state=RunState.PAUSED)),
            at(2000, AgentStateChanged(state=RunState.RUNNING)),
            at(2010, AgentStateChanged(state=RunState.AWAITING_CONFIRMATION)),
            at(3000, AgentStateChanged(state=RunState.RUNNING)),
        )
    )
    assert state.seconds == 25
    assert state.elapsed(START + timedelta(seconds=3004)) == 29
