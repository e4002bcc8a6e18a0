"""What the standing words cost in every call, in tokens of a real tokenizer."""

import json

import pytest

from resolver.agents.system_prompt import system_text
from resolver.agents.tools import offered_tools, tool_specs
from resolver.llm.library import litellm
from resolver.memory.conversation import Dialect
from resolver.templates import folder

LONGEST_SYSTEM_PROMPT = 4_000
LONGEST_TOOLS = 4_000
LONGEST_TEMPLATE = 2_500


def tokens(text: str) -> int:
    return int(litellm().token_counter(model="gpt-4o", text=text))


@pytest.mark.parametrize("dialect", ["tools", "tags"])
def test_the_system_prompt_fits_its_bound_with_all_that_can_be_offered(dialect: Dialect) -> None:
    text = system_text(dialect, may_delegate=True, may_browse=True)
    assert 500 < tokens(text) < LONGEST_SYSTEM_PROMPT


def test_all_tools_fit_their_bound() -> None:
    specs = json.dumps(tool_specs(offered_tools(may_delegate=True, may_browse=True)))
    assert 500 < tokens(specs) < LONGEST_TOOLS


def test_no_template_for_the_model_is_long() -> None:
    templates = sorted([*(folder() / "agent").rglob("*.j2"), *(folder() / "llm").rglob("*.j2")])
    sizes = {path.name: tokens(path.read_text()) for path in templates}
    assert len(sizes) > 20
    assert not {name: size for name, size in sizes.items() if size > LONGEST_TEMPLATE}
