"""Tests that every template renders with and without values, and that prompts stay short."""

from collections.abc import Iterator
from typing import Any

import pytest
from jinja2 import ChainableUndefined, Environment, FileSystemLoader, StrictUndefined, meta

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
from resolver.agents.registry import AGENTS, make_agent
from resolver.agents.tools.registry import tool_specs
from resolver.cli.outcomes import count_outcomes
from resolver.config.templates import template_folder
from resolver.github.comments.templates import markdown_environment
from resolver.llm.library import litellm
from resolver.llm.replay import ReplayModel
from resolver.memory.conversation import Dialect
from resolver.models.run import Extension, McpTool, RunLimits
from tests.agents.test_prompts import make_task

BROWSER_TOOL = McpTool(server="browser", name="browser_navigate")

MAX_PROMPT_TOKENS = 4000
"""Tokens of a system prompt, as counted for gpt-4o."""
MAX_TEMPLATE_TOKENS = 4000
MAX_TOOL_TOKENS = 600
MAX_ALL_TOOLS_TOKENS = 4000

DIALECTS: list[Dialect] = ["tools", "tags"]
TEMPLATES = sorted(
    str(path.relative_to(template_folder())) for path in template_folder().rglob("*.j2")
)
FOR_THE_MODEL = [name for name in TEMPLATES if name.startswith(("agent/", "llm/"))]
NONE_GRANTED = Extension()
NOTHING = {
    "body": "",
    "tail": "",
    "depth": 0,
    "seconds": 0,
    "more": NONE_GRANTED,
    "granted": RunLimits(),
    "left": 0.0,
    **dict.fromkeys(
        ("block", "named", "line", "who", "heading", "thread_text", "cut"), lambda *_: ""
    ),
    "statements": {},
    "task": make_task(),
    "total": count_outcomes(()),
}
"""Values that some templates compute with, so that they can't be missing."""

WORKFLOW_EVENTS: dict[str, object] = {
    "events": {"issues": ["opened"]},
    "conversation": [("issue_comment", "created", "true")],
    "pull_request": [("pull_request_review", "submitted", "true")],
}

CHOSEN: dict[str, dict[str, object]] = {
    "comments/pull_request_part.md.j2": {"part": "change"},
    "verification/omitted_check.txt.j2": {"refused": [("db", "postgres", "runtime")]},
    "init/condition.yml.j2": WORKFLOW_EVENTS,
    "init/workflow.yml.j2": WORKFLOW_EVENTS,
    "run/live_status.txt.j2": {"phase": "work"},
}
"""The part that is rendered of a template with parts, and values with a structure."""


TEXT = {
    "encode", "endswith", "expandtabs", "format", "join", "lower", "lstrip", "partition",
    "removeprefix", "replace", "rstrip", "split", "splitlines", "startswith", "strip", "translate",
    "upper",
}  # fmt: skip
"""Methods that are those of `str`."""


DEEPEST = 8
"""Depth at which a template that walks down a tree ends."""


class Anything(str):
    """A value that can be used as anything in a template: text, a list of two, a number, a call."""

    level: int

    def __new__(cls, level: int = 0) -> "Anything":
        made = super().__new__(cls, "some words")
        made.level = level
        return made

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name in TEXT:
            return super().__getattribute__(name)
        return Anything(self.__dict__["level"] + 1)

    def __getitem__(self, key: Any) -> Any:
        return Anything(self.__dict__["level"] + 1)

    def __call__(self, *args: Any, **more: Any) -> Any:
        return Anything(self.__dict__["level"] + 1)

    def __iter__(self) -> Iterator[Any]:
        level = self.__dict__["level"] + 1
        return iter((Anything(level), Anything(level)) if level < DEEPEST else ())

    def __contains__(self, item: object) -> bool:
        return True

    def __lt__(self, other: Any) -> bool:
        return False

    def __gt__(self, other: Any) -> bool:
        return True

    __le__, __ge__ = __lt__, __gt__

    def __format__(self, spec: str) -> str:
        return format(2, spec) if spec else str(self)

    def __float__(self) -> float:
        return 2.0

    def __int__(self) -> int:
        return 2

    __index__ = __round__ = __int__

    def __add__(self, other: Any) -> Any:
        return str(self) + other if type(other) is str else Anything()

    def __sub__(self, other: Any) -> Any:
        return Anything()

    __radd__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __sub__


def environment(undefined: type, name: str = "") -> Environment:
    if name.startswith("comments/"):
        comments = markdown_environment(undefined)
        # These need a value of the right type.
        for typed in ("duration", "minute", "money", "second", "totals"):
            comments.filters[typed] = lambda _: Anything()
        return comments
    return Environment(
        loader=FileSystemLoader(template_folder()),
        undefined=undefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def names_in(name: str) -> set[str]:
    """Return the names that the template and its includes may be given."""
    found: set[str] = set()

    jinja = environment(StrictUndefined, name)
    waiting, seen = [name], set[str]()
    while waiting:
        source = waiting.pop()
        if source in seen:
            continue
        seen.add(source)
        tree = jinja.parse((template_folder() / source).read_text())
        found |= meta.find_undeclared_variables(tree)
        waiting += [template for template in meta.find_referenced_templates(tree) if template]
    return found


def filled(name: str) -> str:
    values = {variable: Anything() for variable in names_in(name)} | CHOSEN.get(name, {})
    return environment(StrictUndefined, name).get_template(name).render(values)


def tokens(text: str) -> int:
    return int(litellm().token_counter(model="gpt-4o", text=text))


def test_every_template_renders_where_nothing_is_known() -> None:
    texts = {
        name: environment(ChainableUndefined, name).get_template(name).render(NOTHING)
        for name in TEMPLATES
    }
    assert [name for name, text in texts.items() if "Undefined" in text] == []


def test_every_template_renders_where_everything_is_known() -> None:
    empty = [name for name in TEMPLATES if not filled(name).strip()]
    assert empty == ["eval/_cause.txt.j2", "trace/_blocks.html.j2"]  # macros for other templates


def test_no_message_to_the_model_is_long() -> None:
    sizes = {name: tokens(filled(name)) for name in FOR_THE_MODEL}
    assert {name: size for name, size in sizes.items() if size >= MAX_TEMPLATE_TOKENS} == {}


WORDS = "Write the notes of a release in the style of the file NEWS, newest first. " * 100
DEFINITIONS = tuple(
    AgentDefinition(
        name=f"agent-number-{number}",
        description=WORDS[:MAX_DESCRIPTION_LENGTH],
        tools=KNOWN_TOOLS,
        model="",
        read_only=bool(number % 2),
        prompt=WORDS[:MAX_PROMPT_LENGTH],
        path=f"{FOLDER}agent-number-{number}.md",
    )
    for number in range(MAX_DEFINITIONS)
)
ALL = AvailableTools(
    delegates=True, mcp=(BROWSER_TOOL,), index=True, recall=True, definitions=DEFINITIONS
)
NAMES = (*AGENTS, "agent-number-0", "agent-number-1")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", NAMES)
def test_the_system_prompt_of_each_agent_stays_small(name: str, dialect: Dialect) -> None:
    agent = make_agent(name, ReplayModel([]), dialect, ALL)
    assert 5 < tokens(agent.system_prompt().content) < MAX_PROMPT_TOKENS


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", NAMES)
def test_the_system_prompt_of_an_agent_is_always_the_same(name: str, dialect: Dialect) -> None:
    prompts = [make_agent(name, ReplayModel([]), dialect, ALL).system_prompt() for _ in range(2)]
    assert prompts[0].content == prompts[1].content
    assert prompts[0].tools == prompts[1].tools


def test_the_tools_of_the_main_agent_stay_small_if_all_are_offered() -> None:
    agent = make_agent("CodeActAgent", ReplayModel([]), "tools", ALL)
    assert isinstance(agent, CodeActAgent)
    assert tokens(str(agent._tool_specs())) < MAX_ALL_TOOLS_TOKENS


def test_each_tool_description_is_short() -> None:
    for spec in tool_specs():
        assert tokens(str(spec["function"])) < MAX_TOOL_TOKENS, spec["function"]["name"]
