"""Tests of MCP tools in both dialects: what is offered, and what calls become."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.agents.codeact import CodeActAgent
from resolver.agents.definitions import AvailableTools
from resolver.agents.replies import has_pending_actions, next_action, read_reply
from resolver.agents.tools.calls import MAX_TOOL_NAME_LENGTH, native_names, native_specs
from resolver.agents.tools.registry import TOOL_NAMES
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.events.lifecycle import ModelReplied, SystemPrompt
from resolver.events.state import State
from resolver.llm.replay import ReplayModel
from resolver.memory.conversation import Dialect
from resolver.models.run import Completion, McpTool, RequestedToolCall

DIALECTS: list[Dialect] = ["tools", "tags"]
SEARCH = McpTool(
    server="docs",
    name="search",
    description="Finds pages.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query"],
    },
)


def completion(dialect: Dialect, arguments: str, name: str = "docs__search") -> Completion:
    if dialect == "tags":
        return Completion(model="m", text=f"<{name}>\n{arguments}\n</{name}>")
    call = RequestedToolCall(id="1", name=name, arguments=arguments)
    return Completion(model="m", tool_calls=(call,))


def called(dialect: Dialect, arguments: str, tool: McpTool = SEARCH) -> ActionBase:
    (action,) = read_reply(completion(dialect, arguments), dialect, (tool,))
    return action.model_copy(update={"tool_call": None})


def found(arguments: dict[str, Any]) -> a.McpCall:
    return a.McpCall(server="docs", name="search", arguments=arguments)


arguments = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    ),
    max_size=4,
)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(arguments)
def test_a_call_has_its_arguments_in_both_dialects(
    dialect: Dialect, given_: dict[str, Any]
) -> None:
    assert called(dialect, json.dumps(given_)) == found(given_)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_rating_goes_to_an_mcp_tool_only_if_its_schema_has_that_argument(
    dialect: Dialect,
) -> None:
    rated = {"query": "x", "security_risk": "low"}
    assert called(dialect, json.dumps(rated)) == found({"query": "x"})
    own = {"type": "object", "properties": {"query": {}, "security_risk": {}}}
    tool = SEARCH.model_copy(update={"parameters": own})
    assert called(dialect, json.dumps(rated), tool) == found(rated)


def test_a_server_named_like_a_built_in_tool_does_not_replace_it() -> None:
    shadows = tuple(McpTool(server=n, name="execute_bash") for n in ("execute_bash", "docs"))
    assert not native_names(shadows).keys() & set(TOOL_NAMES)


@pytest.mark.parametrize(
    ("dialect", "arguments", "words"),
    [
        ("tools", "{", "docs__search(query: string, limit?: integer)"),
        ("tools", '{"query": "\\ud800"}', "surrogate"),
        ("tags", "[1]", "not a JSON object"),
        ("tags", "{", "not valid JSON"),
    ],
)
def test_faults_of_an_mcp_call_are_explained(dialect: Dialect, arguments: str, words: str) -> None:
    action = called(dialect, arguments)
    assert isinstance(action, a.Invalid) and words in action.reason


def test_a_misspelled_mcp_tool_is_suggested() -> None:
    (action,) = read_reply(completion("tools", "{}", "docs__serch"), "tools", (SEARCH,))
    assert isinstance(action, a.Invalid) and "did you mean 'docs__search'" in action.reason


@pytest.mark.parametrize("dialect", DIALECTS)
def test_mcp_tools_are_offered(dialect: Dialect) -> None:
    agent = CodeActAgent(ReplayModel([]), dialect, AvailableTools(mcp=(SEARCH,)))
    prompt = agent.system_prompt()
    assert prompt.mcp_tools == (SEARCH,) and "docs__search" in prompt.tools
    assert "never what you are to do" in prompt.content
    (spec,) = native_specs((SEARCH,))
    assert spec["function"]["name"] == "docs__search"
    assert spec["function"]["parameters"] == SEARCH.parameters
    assert "Finds pages." in spec["function"]["description"]
    assert ("<docs__search>" in prompt.content) == (dialect == "tags")


def test_replies_are_read_with_the_tools_in_the_log() -> None:
    prompt = SystemPrompt(id=0, content="", dialect="tools", mcp_tools=(SEARCH,))
    reply = ModelReplied(id=1, completion=completion("tools", '{"query": "x"}'))
    state = State.fold([prompt, reply])
    assert isinstance(next_action(state, "tools"), a.McpCall) and has_pending_actions(state)
    narrow = State.fold([prompt.model_copy(update={"tools": ("think",)}), reply])
    assert isinstance(next_action(narrow, "tools"), a.Invalid)


names = st.text(st.characters(codec="ascii"), min_size=1, max_size=90)


@given(st.lists(st.tuples(st.sampled_from(["a", "b-c", "a__b"]), names), max_size=30, unique=True))
def test_names_are_short_plain_and_unique(pairs: list[tuple[str, str]]) -> None:
    tools = [McpTool(server=server, name=name) for server, name in pairs]
    found = native_names(tools)
    assert list(found.values()) == tools
    for name in found:
        assert len(name) <= MAX_TOOL_NAME_LENGTH
        assert (name.isascii() and name.replace("_", "").replace("-", "").isalnum()) or "_" in name
