"""All tools, and those of them that an agent has and a model is offered."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc

from resolver.agents.tools import (
    code,
    code_search,
    finish,
    planning,
    review,
)
from resolver.agents.tools.base import Requirement, Tool
from resolver.config.templates import render, template_folder
from resolver.events.base import ActionBase
from resolver.models.base import JsonObject

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        *code.TOOLS,
        *planning.TOOLS,
        *finish.TOOLS,
        *code_search.TOOLS,
        *review.TOOLS,
    )
}
"""All tools by name, in the order in which they are offered to a model."""

TOOL_NAMES = tuple(TOOLS)

REQUIRED_TOOLS = ("think", "finish")
"""Tools that every agent has, whether it lists them or not."""


@dataclass(frozen=True)
class DelegateAgent:
    """An agent that can be delegated to.

    description: one line.
    """

    name: str
    description: str


def available_tools(requirements: Collection[Requirement]) -> tuple[str, ...]:
    """Return the names of the tools of an agent that lists none, in the order of `TOOL_NAMES`.

    requirements: what the run offers.
    """
    return tuple(
        tool.name
        for tool in TOOLS.values()
        if tool.is_general and (tool.requires is None or tool.requires in requirements)
    )


def tool_name_of(action: ActionBase) -> str | None:
    """Return the name of the tool whose calls become such actions; None if there is none."""
    tools = (tool for tool in TOOLS.values() if isinstance(action, tool.arguments.action_types))
    return next((tool.name for tool in tools), None)


@cache
def tool_specs(
    names: tuple[str, ...] = TOOL_NAMES,
    colleagues: tuple[DelegateAgent, ...] = (),
    is_read_only: bool = False,
    has_threads: bool = False,
) -> tuple[JsonObject, ...]:
    """Return the native tool specifications in OpenAI's format.

    colleagues: agents that `delegate` accepts.
    is_read_only: the result of the agent is its final message; it publishes no change.
    has_threads: the run was asked about review threads, which `finish` answers.
    """
    return tuple(
        {
            "type": "function",
            "function": {
                "name": name,
                "description": _describe(name, colleagues, is_read_only),
                "parameters": TOOLS[name].arguments.offered_schema(
                    is_read_only=is_read_only, has_threads=has_threads
                ),
            },
        }
        for name in names
    )


def _describe(name: str, colleagues: tuple[DelegateAgent, ...], is_read_only: bool) -> str:
    template = f"agent/tools/{name}.md.j2"
    if not (template_folder() / template).is_file():
        return cleandoc(TOOLS[name].arguments.__doc__ or "")
    return render(template, colleagues=colleagues, is_read_only=is_read_only).strip()


def tool_usage(name: str, schema: JsonObject) -> str:
    """Return the signature of a tool, like `execute_bash(command: string, timeout?: number)`.

    schema: of its arguments.
    """
    required = schema.get("required") or ()
    parts = (
        f"{key}{'' if key in required else '?'}: {value.get('type', 'string')}"
        for key, value in (schema.get("properties") or {}).items()
    )
    return f"{name}({', '.join(parts)})"
