"""Tests that prompts and descriptions of tools stay short."""

import importlib.util
import os
from functools import cache

import pytest
import tiktoken

from resolver.agents.built_in import BUILT_IN
from resolver.agents.codeact import CodeActAgent
from resolver.agents.definitions import (
    FOLDER,
    KNOWN_TOOLS,
    MAX_DEFINITIONS,
    MAX_DESCRIPTION_LENGTH,
    MAX_PROMPT_LENGTH,
    AgentDefinition,
    AvailableTools,
)
from resolver.agents.registry import make_agent
from resolver.llm.replay import ReplayModel
from resolver.memory.conversation import Dialect
from resolver.models.run import McpTool

BROWSER_TOOL = McpTool(server="browser", name="browser_navigate")

MAX_PROMPT_TOKENS = 4000
"""Tokens of a system prompt, as counted for gpt-4o."""
MAX_ALL_TOOLS_TOKENS = 4000

DIALECTS: list[Dialect] = ["tools", "tags"]


@cache
def encoding() -> tiktoken.Encoding:
    """The tokens of gpt-4o, from litellm's copy: importing litellm itself takes seconds."""
    [package] = importlib.util.find_spec("litellm").submodule_search_locations  # type: ignore
    os.environ["TIKTOKEN_CACHE_DIR"] = f"{package}/litellm_core_utils/tokenizers"
    return tiktoken.get_encoding("o200k_base")


def tokens(text: str) -> int:
    return len(encoding().encode(text))


WORDS = "Write the notes of a release in the style of the file NEWS, newest first. " * 100
DEFINITIONS = tuple(
    AgentDefinition(
        name=f"agent-number-{number}",
        description=WORDS[:MAX_DESCRIPTION_LENGTH],
        tools=KNOWN_TOOLS,
        read_only=bool(number % 2),
        prompt=WORDS[:MAX_PROMPT_LENGTH],
        path=f"{FOLDER}agent-number-{number}.md",
    )
    for number in range(MAX_DEFINITIONS)
)
ALL = AvailableTools(
    delegates=True, mcp=(BROWSER_TOOL,), index=True, recall=True, definitions=DEFINITIONS
)
NAMES = (*(agent.name for agent in BUILT_IN), "agent-number-0", "agent-number-1")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", NAMES)
def test_the_system_prompt_of_each_agent_stays_small(name: str, dialect: Dialect) -> None:
    agent = make_agent(name, ReplayModel([]), dialect, ALL)
    assert 5 < tokens(agent.system_prompt().content) < MAX_PROMPT_TOKENS


def test_the_tools_of_the_main_agent_stay_small_if_all_are_offered() -> None:
    agent = make_agent("CodeActAgent", ReplayModel([]), "tools", ALL)
    assert isinstance(agent, CodeActAgent)
    assert tokens(str(agent._tool_specs())) < MAX_ALL_TOOLS_TOKENS
