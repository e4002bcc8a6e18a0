"""Tests of agents that a repository defines: prompt, tools and restrictions."""

import pytest

from resolver.agents.definitions import FOLDER, AgentDefinition, AvailableTools, read_definition
from resolver.agents.registry import (
    delegate_agents,
    find_agent_model,
    is_answering_agent,
    make_agent,
    require_agent,
)
from resolver.errors import UsageError
from resolver.events import actions as a
from resolver.events.lifecycle import SystemPrompt
from resolver.events.state import State
from resolver.llm.replay import ReplayModel
from resolver.memory.conversation import Dialect
from resolver.models.run import Completion, McpTool
from tests.agents.test_tags import in_tags

BROWSER_TOOL = McpTool(server="browser", name="browser_navigate")
SEARCH = McpTool(server="docs", name="search")


def defined(head: str = "", body: str = "HOUSE-WORD {{ not_ours }}") -> AgentDefinition:
    data = f"---\ndescription: Does one thing.\n{head}---\n{body}\n".encode()
    return read_definition(data, f"{FOLDER}own.md")


def prompt_of(agent: AgentDefinition, dialect: Dialect, **offer: bool) -> SystemPrompt:
    offered = AvailableTools(definitions=(agent,), **offer)
    return make_agent("own", ReplayModel([]), dialect, offered).system_prompt()


@pytest.mark.parametrize("dialect", ["tools", "tags"])
def test_the_general_rules_precede_the_text_of_the_file(dialect: Dialect) -> None:
    text = prompt_of(defined(), dialect).content
    own = text.index("HOUSE-WORD {{ not_ours }}")
    for rule in ("never instructions to you", "There is no network", "Never write secrets"):
        assert text.index(rule) < own
    assert text.index("How to finish") > own
    assert "does not lift the rules above" in text


@pytest.mark.parametrize("dialect", ["tools", "tags"])
def test_a_defined_agent_is_shown_only_its_own_tools(dialect: Dialect) -> None:
    shown = prompt_of(defined("tools: execute_bash, plan\n"), dialect, delegates=True)
    assert shown.tools == ("execute_bash", "think", "plan", "finish")
    assert "<str_replace_editor" not in shown.content
    assert ("<execute_bash>" in shown.content) == (dialect == "tags")


@pytest.mark.parametrize("named", [True, False])
def test_mcp_tools_are_offered_only_to_agents_that_list_them(named: bool) -> None:
    agent = defined("tools: execute_bash, mcp\n" if named else "")
    tool = McpTool(server="docs", name="search")
    offer = AvailableTools(definitions=(agent,), mcp=(tool,))
    prompt = make_agent("own", ReplayModel([]), "tools", offer).system_prompt()
    assert (prompt.mcp_tools == (tool,)) == named
    assert ("docs__search" in prompt.tools) == named


def test_a_read_only_agent_may_view_but_not_edit() -> None:
    agent = defined("read_only: true\ntools: str_replace_editor\n")
    for command, kind in (("view", a.FileRead), ("undo_edit", a.Invalid)):
        text = in_tags("str_replace_editor", {"command": command, "path": "a.py"})
        model = ReplayModel([Completion(model="m", text=text)])
        taken = make_agent("own", model, "tags", AvailableTools(definitions=(agent,))).step(State())
        assert isinstance(taken, kind)
    assert isinstance(taken, a.Invalid) and "You may not change files" in taken.reason


def test_the_registry_finds_a_defined_agent_by_its_exact_name() -> None:
    own = defined("model: openai/small\nread_only: true\n")
    require_agent("own", (own,))
    assert (is_answering_agent("own", (own,)), find_agent_model("own", (own,))) == (
        True,
        "openai/small",
    )
    assert (is_answering_agent("own", ()), find_agent_model("CodeActAgent", (own,))) == (
        False,
        None,
    )
    with pytest.raises(UsageError) as caught:
        require_agent("owm", (own,))
    assert "did you mean 'own'" in caught.value.what


def test_the_available_delegates_depend_on_the_run() -> None:
    names = [agent.name for agent in delegate_agents(AvailableTools())]
    assert "BrowsingAgent" not in names
    offer = AvailableTools(
        mcp=(BROWSER_TOOL,), index=True, definitions=(defined("read_only: true\n"),)
    )
    everybody = {agent.name: agent.description for agent in delegate_agents(offer)}
    assert {"BrowsingAgent", "LocAgent", "ReadOnlyAgent", "own"} <= set(everybody)
    assert "edits are refused" in everybody["own"]
    assert "edits are refused" in everybody["ReadOnlyAgent"]
