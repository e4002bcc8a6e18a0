"""State is a fold: derived, deterministic, and true at every prefix."""

from hypothesis import given

from resolver.events.actions import CmdRun, FileEdit, Finish
from resolver.events.lifecycle import ModelReplied
from resolver.events.observations import AgentStateChanged, CmdOutput, FileEditResult
from resolver.events.state import State
from resolver.model import Completion, RunState, Tokens
from tests.events.strategies import logs


def numbered(*events):
    return [e.model_copy(update={"id": i}) for i, e in enumerate(events)]


def facts(state: State) -> dict:
    return {k: v for k, v in vars(state).items() if k != "events"}


@given(logs())
def test_the_same_log_gives_the_same_state_and_a_prefix_the_state_at_that_time(events) -> None:
    running = State()
    for i, event in enumerate(events):
        running.apply(event)
        assert facts(running) == facts(State.fold(events[: i + 1]))


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
            FileEditResult(cause=2, path="a.py"),
        )
    )
    assert [(c.command, c.exit_code) for c in state.commands] == [("pytest -q", 1)]
    assert state.files_touched == ["a.py"]
    assert not state.pending


def test_an_action_without_observation_is_pending() -> None:
    assert list(State.fold(numbered(CmdRun(command="sleep 9"))).pending) == [0]


def test_the_run_state_is_what_the_log_says_last() -> None:
    state = State.fold(
        numbered(
            AgentStateChanged(state=RunState.RUNNING),
            Finish(message="done"),
            AgentStateChanged(state=RunState.FINISHED, reason="done"),
        )
    )
    assert state.run_state is RunState.FINISHED
    assert state.finish is not None
