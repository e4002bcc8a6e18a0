"""Property tests of all condensers: valid messages, and the same result for the same log."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolver.config.agent_settings import CONDENSERS, NO_CONDENSER
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import EventBase, Source
from resolver.events.lifecycle import Condensation, SystemPrompt, Warned
from resolver.events.log import dump_line, parse_line
from resolver.events.state import State
from resolver.memory.condensers.registry import CONDENSER_FACTORIES
from resolver.memory.condensers.rules import ConversationWindow, Pipeline
from resolver.memory.condensers.view import LogCondenser
from resolver.memory.conversation import ConversationMemory
from resolver.models.run import PlanItem
from tests.memory.condensers.scenarios import Noting, asker
from tests.memory.logs import Log, task
from tests.memory.test_conversation import DIALECTS, assert_pairs_are_complete

SMALL: dict[str, dict[str, int]] = {
    "recent": {"keep_first": 1, "keep_last": 3},
    "masking": {"keep_last": 2},
    "amortized": {"max_turns": 6, "keep_first": 1},
}
"""Parameters with which a condenser has something to do in a short conversation."""
NAMES = [name for name in CONDENSERS if name != NO_CONDENSER]
PICTURE = "data:image/png;base64,AAAA"
STEPS: list[tuple[EventBase, EventBase | None]] = [
    (a.CmdRun(command="ls"), o.CmdOutput(content="word " * 300, exit_code=0)),
    (a.CmdRun(command="pytest -q"), o.CmdOutput(content="FAILED x\n" * 150, exit_code=1)),
    (a.CmdRun(command="rm a.txt"), None),
    (a.FileEdit(command="insert", path="a.py"), o.FileEditResult(path="a.py", diff="+x")),
    (a.FileRead(path="b.py"), o.FileReadResult(path="b.py", content="line\n" * 400)),
    (a.McpCall(server="x", name="y"), o.McpResult(content="page " * 300, images=(PICTURE,))),
    (a.PlanUpdate(items=(PlanItem(title="do it"),)), o.PlanUpdated(content="noted")),
    (a.Think(content="hm"), o.Null()),
    (a.Invalid(reason="write it so"), o.ErrorObservation(content="write it so")),
]
words = st.text(alphabet="abcdefgh ", min_size=1, max_size=12).filter(str.strip)
spoken = st.one_of(
    st.builds(lambda text: ("user", text), words),
    st.builds(lambda text: ("auto", text), words),
    st.builds(lambda text: ("warned", text), words),
)
moves = st.lists(
    st.one_of(
        st.lists(st.sampled_from(range(len(STEPS))), min_size=1, max_size=3),
        spoken,
        st.sampled_from(["request", "question"]),
    ),
    min_size=1,
    max_size=25,
)


def play(log: Log, move: Any) -> None:
    """One thing that happens in a run."""
    match move:
        case [*steps] if isinstance(move, list):
            reply = log.reply(*[("execute_bash", "{}")] * len(steps), text=f"say {steps}")
            for step in steps:
                action, result = STEPS[step]
                cause = log.add(action.model_copy(update={"reply": reply}))
                if result is not None:
                    log.add(result.model_copy(update={"cause": cause}))
        case ("user", text):
            log.add(task(f"<{text}>"))
        case ("auto", text):
            log.add(a.Message(content=f"({text})", source=Source.USER, cause=1))
        case ("warned", text):
            log.add(Warned(about="x", message=text, to_agent=True))
        case "request":
            log.add(a.CondensationRequest())
        case "question":
            reply = log.reply(text="What now?")
            log.add(a.Message(content="What now?", wait_for_response=True, reply=reply))


def condenser(name: str, log: Log, bound: int) -> LogCondenser:
    notes = ['{"cause": ["steps 1, 3 and 5"]}'] * 100
    parameters = SMALL.get(name, {"keep_last": 3})
    made = CONDENSER_FACTORIES[name](lambda: asker(log, Noting(*notes)), **parameters)
    whole = Pipeline(made, ConversationWindow(only_asked=True))
    return LogCondenser(whole, lambda: bound)


def run(name: str, moves: list[Any], bound: int) -> Log:
    """A run with the condenser at work before each call."""
    log = Log(SystemPrompt(content="rules"), task("<fix it>"))
    condensing = condenser(name, log, bound)
    for move in moves:
        play(log, move)
        condensation = condensing.condense(log.state)
        if condensation is not None:
            log.add(condensation)
    return log


def assert_turns_are_strict(messages: list[dict[str, Any]]) -> None:
    """Check the rules of the strictest providers other than complete pairs."""
    assert_pairs_are_complete([m for m in messages if not isinstance(m["content"], list)])
    assert [m["role"] for m in messages].count("system") == 1 and messages[0]["role"] == "system"
    assert messages[1]["role"] == "user"
    for before, now in pairwise(messages):
        if now["role"] == "tool":
            assert before["role"] in ("assistant", "tool")
        else:
            assert now["role"] != before["role"]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(moves=moves, bound=st.sampled_from([100, 800, 3_000]))
def test_messages_stay_valid_and_those_of_the_user_stay(
    name: str, moves: list[Any], bound: int
) -> None:
    log = run(name, moves, bound)
    said = ["<fix it>", *(f"<{move[1]}>" for move in moves if move[0] == "user")]
    for dialect in DIALECTS:
        messages = ConversationMemory(dialect, sees_images=True).messages(log.state)
        assert_turns_are_strict(messages)
        result = json.dumps(messages)
        at = 0
        for sentence in said:
            at = result.index(sentence, at) + 1


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(moves=moves, bound=st.sampled_from([100, 800, 3_000]))
def test_the_same_log_gives_the_same_condensation(name: str, moves: list[Any], bound: int) -> None:
    log = run(name, moves, bound)
    events = [parse_line(dump_line(event)) for event in log.state.events]
    at = [e.id for e in events if isinstance(e, Condensation)]
    for number in at:
        fresh = Log()
        fresh.state = State.fold(events[:number])
        found = condenser(name, fresh, bound).condense(fresh.state)
        assert found is not None
        assert found.model_copy(update={"id": number}) == events[number]
