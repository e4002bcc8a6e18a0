"""Tests of MCP tools in both dialects: what is offered, and what calls become."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resolver.agents.codeact import CodeActAgent
from resolver.agents.definitions import AvailableTools
from resolver.agents.replies import has_pending_actions, next_action, read_reply
from resolver.agents.tags import parse_tags
from resolver.agents.tools.calls import (
    MAX_TOOL_NAME_LENGTH,
    native_names,
    native_specs,
    write_call,
)
from resolver.agents.tools.registry import TOOL_NAMES, tool_usage
from resolver.events import actions as a
from resolver.events.lifecycle import ModelReplied, SystemPrompt
from resolver.events.state import State
from resolver.llm.replay import ReplayModel
from resolver.memory.conversation import Dialect
from resolver.models.run import Completion, McpTool, RequestedToolCall

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
CALL = a.McpCall(server="docs", name="search", arguments={"query": "x"})


def native(name: str, arguments: str) -> Completion:
    return Completion(
        model="m", tool_calls=(RequestedToolCall(id="1", name=name, arguments=arguments),)
    )


def same(found: Any, wanted: a.McpCall) -> bool:
    return isinstance(found, a.McpCall) and (found.server, found.name, found.arguments) == (
        wanted.server, wanted.name, wanted.arguments,
    )  # fmt: skip


def agent(dialect: Dialect, *tools: McpTool) -> CodeActAgent:
    return CodeActAgent(ReplayModel([]), dialect, AvailableTools(mcp=tools))


def test_a_rating_goes_to_an_mcp_tool_only_if_its_schema_has_that_argument() -> None:
    arguments = {"query": "x", "security_risk": "low"}
    (found,) = read_reply(native("docs__search", json.dumps(arguments)), "tools", (SEARCH,))
    assert same(found, CALL)
    tag = write_call(CALL.model_copy(update={"arguments": arguments}))
    for text in (tag, tag.replace("<mcp ", '<mcp security_risk="low" ')):
        (found,) = parse_tags(text, mcp=(SEARCH,))
        assert same(found, CALL)
    own = {"type": "object", "properties": {"query": {}, "security_risk": {}}}
    tool = SEARCH.model_copy(update={"parameters": own})
    (found,) = parse_tags(tag, mcp=(tool,))
    assert same(found, CALL.model_copy(update={"arguments": arguments}))


def test_without_mcp_tools_there_is_no_mcp_tag() -> None:
    assert parse_tags('<mcp server="docs" tool="search">{}</mcp>') == ()


def test_a_server_named_like_a_built_in_tool_does_not_replace_it() -> None:
    shadows = tuple(McpTool(server=n, name="execute_bash") for n in ("execute_bash", "docs"))
    assert not native_names(shadows).keys() & set(TOOL_NAMES)
    (found,) = read_reply(native("execute_bash", '{"command": "ls"}'), "tools", shadows)
    assert isinstance(found, a.CmdRun)


def test_faults_of_an_mcp_call_are_explained() -> None:
    for completion, words in (
        (native("docs__search", "{"), "docs__search(query: string, limit?: integer)"),
        (native("docs__serch", "{}"), "did you mean 'docs__search'"),
        (native("docs__search", '{"query": "\\ud800"}'), "surrogate"),
    ):
        (found,) = read_reply(completion, "tools", (SEARCH,))
        assert isinstance(found, a.Invalid) and words in found.reason
    for text, words in (
        ('<mcp server="docs" tool="search">[1]</mcp>', "not one JSON object"),
        ('<mcp server="docs" tool="search">{</mcp>', "not valid JSON"),
        ('<mcp server="docs" tool="x">{}</mcp>', "there is no tool 'x'"),
        ('<mcp tool="search">{}</mcp>', "two attributes"),
    ):
        (found,) = parse_tags(text, mcp=(SEARCH,))
        assert isinstance(found, a.Invalid) and words in found.reason


def test_mcp_tools_are_offered_as_native_tools() -> None:
    (spec,) = native_specs((SEARCH,))
    assert spec["function"]["name"] == "docs__search"
    assert spec["function"]["parameters"] == SEARCH.parameters
    assert "Finds pages." in spec["function"]["description"]
    prompt = agent("tools", SEARCH).system_prompt()
    assert prompt.mcp_tools == (SEARCH,) and "docs__search" in prompt.tools
    assert "never what you are to do" in prompt.content


def test_mcp_tools_are_offered_as_text_in_the_tag_dialect() -> None:
    prompt = agent("tags", SEARCH).system_prompt()
    assert "mcp" in prompt.tools and "docs__search" not in prompt.tools
    assert 'server="docs" tool="search"' in prompt.content and '"query"' in prompt.content


def test_replies_are_read_with_the_mcp_tools_in_the_log() -> None:
    state = State.fold(
        [
            SystemPrompt(id=0, content="", dialect="tools", mcp_tools=(SEARCH,)),
            ModelReplied(id=1, completion=native("docs__search", '{"query": "x"}')),
        ]
    )
    assert same(next_action(state, "tools"), CALL) and has_pending_actions(state)
    assert same(agent("tools").step(state), CALL)


names = st.text(st.characters(codec="ascii"), min_size=1, max_size=90)


@given(st.lists(st.tuples(st.sampled_from(["a", "b-c", "a__b"]), names), max_size=30, unique=True))
def test_names_are_short_plain_and_unique(pairs: list[tuple[str, str]]) -> None:
    tools = [McpTool(server=server, name=name) for server, name in pairs]
    found = native_names(tools)
    assert list(found.values()) == tools
    for name, tool in found.items():
        assert len(name) <= MAX_TOOL_NAME_LENGTH
        assert (name.isascii() and name.replace("_", "").replace("-", "").isalnum()) or "_" in name
        assert tool_usage(name, tool.parameters).startswith(name)


arguments = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    ),
    max_size=4,
)


@given(arguments)
def test_a_call_written_as_a_tag_gives_the_same_action(given_: dict[str, Any]) -> None:
    action = CALL.model_copy(update={"arguments": given_})
    (found,) = parse_tags(write_call(action), mcp=(SEARCH,))
    assert same(found, action), json.dumps(given_)
