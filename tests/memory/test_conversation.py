"""Tests of converting events to messages: complete pairs, stable prefix, linear cost."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import EventBase, ToolCall
from resolver.events.lifecycle import Condensation, ModelReplied, Warned
from resolver.events.state import State
from resolver.memory.conversation import MAX_OBSERVATION_LENGTH, ConversationMemory, Dialect
from resolver.models.run import Completion, RequestedToolCall
from tests.events.strategies import logs
from tests.memory.logs import started

DIALECTS: list[Dialect] = ["tools", "tags"]
OK = o.CmdOutput(content="out", exit_code=0, cwd="/workspace")


def roles(messages: list[dict[str, Any]]) -> list[str]:
    return [m["role"] for m in messages]


def assert_pairs_are_complete(messages: list[dict[str, Any]]) -> None:
    """Check that each tool call has its result, without which providers refuse a conversation."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert waiting and message["tool_call_id"] == waiting.pop(0)
            assert message["content"]
            continue
        assert not waiting, "a call has no result"
        if message.get("tool_calls"):
            waiting = [c["id"] for c in message["tool_calls"]]
            assert len(set(waiting)) == len(waiting)
            for call in message["tool_calls"]:
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
                assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"])
        else:
            assert message["content"].strip()
    assert not waiting


def test_a_reply_with_calls_is_one_message_followed_by_its_results() -> None:
    log = started()
    reply = log.reply(("execute_bash", '{"command": "a"}'), ("think", '{"thought": "b"}'), text="I")
    first = log.add(a.CmdRun(command="a", reply=reply))
    log.add(o.CmdOutput(content="out", exit_code=1, cwd="/w", cause=first))
    second = log.add(a.Think(content="b", reply=reply))
    log.add(o.Null(cause=second))
    messages = ConversationMemory().messages(log.state)
    assert roles(messages) == ["system", "user", "assistant", "tool", "tool"]
    assert messages[2]["content"] == "I"
    assert [c["id"] for c in messages[2]["tool_calls"]] == ["c0", "c1"]
    assert messages[3]["content"] == "out\n[exit code 1, in /w]"
    assert messages[4]["content"] == "Noted."


def test_in_tags_the_text_is_unchanged_and_results_are_user_text() -> None:
    log = started()
    text = "Look\n<execute_bash>ls</execute_bash>\n"
    reply = log.reply(text=text)
    cause = log.add(a.CmdRun(command="ls", reply=reply))
    log.add(OK.model_copy(update={"cause": cause}))
    messages = ConversationMemory("tags").messages(log.state)
    assert roles(messages) == ["system", "user", "assistant", "user"]
    assert messages[2]["content"] == text
    assert messages[3]["content"] == "OBSERVATION:\nout\n[exit code 0, in /workspace]"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_action_without_observation_is_shown_as_interrupted(dialect: Dialect) -> None:
    log = started()
    log.turn(a.CmdRun(command="a"), None)
    messages = ConversationMemory(dialect).messages(log.state)
    assert "the run was interrupted" in messages[-1]["content"]
    assert_pairs_are_complete(messages)


def test_invalid_calls_are_sent_back_in_a_valid_form() -> None:
    log = started()
    broken = [("", "{broken"), ("bash tool!", "[1]"), ("x" * 90, '{"a": 1}')]
    requested = tuple(RequestedToolCall(id="same", name=n, arguments=x) for n, x in broken)
    log.add(ModelReplied(completion=Completion(model="m", tool_calls=requested)))
    reply = len(log.state.events) - 1
    for _ in broken:
        log.add(a.Invalid(reason="no such tool", reply=reply))
    messages = ConversationMemory().messages(log.state)
    assert_pairs_are_complete(messages)
    assert [m["content"] for m in messages[-3:]] == ["ERROR: no such tool"] * 3


def test_a_long_result_is_truncated_and_says_where_the_rest_is() -> None:
    log = started()
    content = "".join(f"line {i}\n" for i in range(5000))
    log.turn(a.CmdRun(command="a"), o.CmdOutput(content=content, exit_code=0, output_file="/tmp/o"))
    shown = ConversationMemory().messages(log.state)[-1]["content"]
    assert len(shown) < MAX_OBSERVATION_LENGTH + 300
    assert "/tmp/o" in shown
    assert shown.startswith("line 0\n") and "line 4999\n[exit code 0]" in shown


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (o.IPythonOutput(content="Boom", error=True), "Boom\n[the cell raised an error]"),
        (o.IPythonOutput(images=("data:",)), "[image 1: not shown, since you can't see"),
        (o.FileReadResult(path="x", content="1 a"), "1 a"),
        (o.FileEditResult(path="x", diff="-a\n+b"), "-a\n+b"),
        (o.FileWriteResult(path="x"), "[no output]"),
        (o.ErrorObservation(content="no such file"), "ERROR: no such file"),
        (
            o.RecallResult(content="use tabs", sources=("AGENTS.md",)),
            "---\nuse tabs\n--- end instructions",
        ),
    ],
)
def test_each_kind_of_result_is_shown(result: EventBase, words: str) -> None:
    log = started()
    log.turn(a.CmdRun(command="a"), result)
    assert words in ConversationMemory().messages(log.state)[-1]["content"]


def test_an_action_without_a_reply_is_shown_with_its_result() -> None:
    log = started()
    call = ToolCall(id="x", name="execute_bash", arguments='{"command": "a"}')
    cause = log.add(a.CmdRun(command="a", tool_call=call, thought="I"))
    log.add(OK.model_copy(update={"cause": cause}))
    for dialect in DIALECTS:
        messages = ConversationMemory(dialect).messages(log.state)
        assert_pairs_are_complete(messages)
        assert roles(messages)[2] == "assistant"
        assert "out" in messages[-1]["content"]


def test_condensed_turns_are_replaced_by_the_summary() -> None:
    log = started()
    replies = [log.turn(a.CmdRun(command=c), OK, text=f"say {c}") for c in "abc"]
    log.add(Condensation(forgotten=(replies[1] + 1,), summary="did b"))
    for dialect in DIALECTS:
        messages = ConversationMemory(dialect).messages(log.state)
        assert_pairs_are_complete(messages)
        result = str(messages)
        assert "say a" in result and "say c" in result and "say b" not in result
        assert result.index("say a") < result.index("did b") < result.index("say c")
        assert result.count("did b") == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_messages_that_were_sent_stay_identical(dialect: Dialect) -> None:
    log = started()
    memory = ConversationMemory(dialect)
    sent = ""
    for number in range(30):
        messages = memory.messages(log.state)
        text = json.dumps(messages)[:-1]
        assert text.startswith(sent)
        sent = text
        log.turn(a.CmdRun(command=str(number)), OK, text=f"say {number}")
        if number % 7 == 0:
            log.add(Warned(about="x", message="warned", to_agent=True))
    assert memory.messages(log.state) == ConversationMemory(dialect).messages(log.state)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(events=logs(max_size=12), data=st.data())
def test_any_log_gives_complete_pairs(
    dialect: Dialect, events: list[EventBase], data: st.DataObject
) -> None:
    state = State()
    memory = ConversationMemory(dialect)
    for event in [*events, Condensation(id=len(events), forgotten=(1, 2), summary="s")]:
        if data.draw(st.booleans()):
            assert_pairs_are_complete(memory.messages(state))
        state.apply(event)  # type: ignore[arg-type]
    messages = memory.messages(state)
    assert_pairs_are_complete(messages)
    assert messages == ConversationMemory(dialect).messages(state)
