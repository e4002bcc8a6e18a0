"""Every template renders with nothing in it; the words that each call pays for are short."""

import pytest
from jinja2 import ChainableUndefined, Environment, FileSystemLoader

from resolver.agents.browsing import BrowsingAgent, VisualBrowsingAgent
from resolver.agents.system_prompt import system_text
from resolver.agents.tools import tool_specs
from resolver.llm.library import litellm
from resolver.llm.replay import ReplayModel
from resolver.memory.conversation import Dialect
from resolver.model import Extension, Limits
from resolver.templates import folder

MOST = 4000
"""Tokens of a system prompt, as counted for gpt-4o."""
MOST_OF_A_TOOL = 600

DIALECTS: list[Dialect] = ["tools", "tags"]
TEMPLATES = sorted(str(path.relative_to(folder())) for path in folder().rglob("*.j2"))
NONE_GRANTED = Extension()
NOTHING = {
    "body": "",
    "tail": "",
    "depth": 0,
    "seconds": 0,
    "more": NONE_GRANTED,
    "granted": Limits(),
}
"""What some templates compute with, so that it can't be absent."""


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_renders_where_nothing_is_known(name: str) -> None:
    empty = Environment(
        loader=FileSystemLoader(folder()),
        undefined=ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    assert "Undefined" not in empty.get_template(name).render(NOTHING)


def tokens(text: str) -> int:
    return int(litellm().token_counter(model="gpt-4o", text=text))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_system_prompt_stays_small(dialect: Dialect) -> None:
    assert tokens(system_text(dialect, may_delegate=True, may_browse=True)) < MOST


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("agent", [BrowsingAgent, VisualBrowsingAgent])
def test_so_do_those_of_the_browsing_agents(agent: type[BrowsingAgent], dialect: Dialect) -> None:
    assert tokens(agent(ReplayModel([]), dialect).system_prompt().content) < MOST / 2


def test_each_tool_is_described_in_few_words() -> None:
    for spec in tool_specs():
        assert tokens(str(spec["function"])) < MOST_OF_A_TOOL, spec["function"]["name"]
