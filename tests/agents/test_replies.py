"""Tests of reading actions from a reply of a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.agents.replies import read_reply
from resolver.events import actions as a
from resolver.memory.conversation import Dialect
from resolver.models.run import Completion, RequestedToolCall

DIALECTS: list[Dialect] = ["tools", "tags"]


def reply(text: str = "", *calls: tuple[str, str], finish_reason: str = "stop") -> Completion:
    return Completion(
        model="m",
        text=text,
        tool_calls=tuple(
            RequestedToolCall(id=f"c{i}", name=n, arguments=x) for i, (n, x) in enumerate(calls)
        ),
        finish_reason=finish_reason,
    )


LS = ("execute_bash", '{"command": "ls"}')
FINISH = ("finish", '{"message": "done"}')


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tool_calls_win_over_tags(dialect: Dialect) -> None:
    actions = read_reply(reply("<execute_bash>pwd</execute_bash>", LS), dialect)
    assert [type(x) for x in actions] == [a.CmdRun]
    assert isinstance(actions[0], a.CmdRun) and actions[0].command == "ls"


def test_the_text_is_the_thought_of_the_first_call() -> None:
    first, second = read_reply(reply(" I look. ", LS, LS), "tools")
    assert first.thought == "I look."
    assert second.thought == ""
    assert first.tool_call and second.tool_call
    assert (first.tool_call.id, second.tool_call.id) == ("c0", "c1")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_follows_a_finish_is_dropped(dialect: Dialect) -> None:
    actions = read_reply(reply("", LS, FINISH, LS), dialect)
    assert [type(x) for x in actions] == [a.CmdRun, a.Finish]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "text",
    ["Shall I go on?", "Is this the traceback?\n\n```\nKeyError: 1\n```", "```bash\nls\n```"],
)
def test_text_without_an_action_waits_for_an_answer(dialect: Dialect, text: str) -> None:
    assert read_reply(reply(text), dialect) == (a.Message(content=text, wait_for_response=True),)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_bare_exit_ends_the_run_as_not_completed(dialect: Dialect) -> None:
    assert read_reply(reply(" /exit\n"), dialect) == (a.Finish(message="", task_completed=False),)


def test_tags_are_never_executed_in_the_tool_call_dialect() -> None:
    (action,) = read_reply(reply("<execute_bash>curl evil</execute_bash>"), "tools")
    assert isinstance(action, a.Invalid)
    assert "native tool calls only" in action.reason


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("text", "finish_reason", "words"),
    [
        ("", "stop", "Your reply was empty, so"),
        (" \n", "content_filter", "empty (content_filter)"),
        ("I think that", "length", "output limit"),
    ],
)
def test_a_reply_without_anything_usable_is_answered_so(
    dialect: Dialect, text: str, finish_reason: str, words: str
) -> None:
    (action,) = read_reply(reply(text, finish_reason=finish_reason), dialect)
    assert isinstance(action, a.Invalid)
    assert words in action.reason


def test_an_unreadable_reply_is_answered_with_the_agents_own_tools() -> None:
    (tagged,) = read_reply(
        reply("<think>x</think>/y</think>"), "tags", (), ("think", "plan", "finish")
    )
    assert isinstance(tagged, a.Invalid)
    assert "The tags are <think>, <plan>, <finish>." in tagged.reason
    assert "execute_bash" not in tagged.reason
    called = reply("", ("no_such_thing", "{}"))
    (native,) = read_reply(called, "tools", (), ("think", "finish"))
    assert isinstance(native, a.Invalid)
    assert "The tools are think, finish." in native.reason


words = st.lists(
    st.sampled_from(
        ["<execute_bash>", "</execute_bash>", "<finish>", "</finish>", "/exit", "ls", "\n", "```",
         "<cause>", "</cause>", "&lt;", "</think>", "<execute_bsh>", "</execute_bsh>"]
    ),
    max_size=8,
).map("".join)  # fmt: skip


@given(
    st.text(max_size=40) | words,
    st.lists(st.tuples(st.text(max_size=9), st.text(max_size=20)), max_size=3),
    st.sampled_from(["stop", "length", "", "tool_calls"]),
    st.sampled_from(DIALECTS),
)
def test_every_reply_gives_an_action(
    text: str, calls: list[tuple[str, str]], finish_reason: str, dialect: Dialect
) -> None:
    completion = reply(text, *calls, finish_reason=finish_reason)
    assert read_reply(completion, dialect)
    assert read_reply(completion, dialect) == read_reply(completion, dialect)
