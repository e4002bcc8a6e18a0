"""The tools as they are offered to a model: names, descriptions, JSON schemas."""

from functools import cache
from typing import Any

from resolver.agents.arguments import TOOLS, Arguments
from resolver.model import JsonObject
from resolver.templates import render

TOOL_NAMES = tuple(TOOLS)


def offered_tools(may_delegate: bool, may_browse: bool = False) -> tuple[str, ...]:
    """The names of the tools of an agent, in their order."""
    absent = ({"delegate"} if not may_delegate else set()) | (
        {"browser"} if not may_browse else set()
    )
    return tuple(name for name in TOOL_NAMES if name not in absent)


@cache
def tool_specs(names: tuple[str, ...] = TOOL_NAMES) -> tuple[JsonObject, ...]:
    """The native tool specifications, in OpenAI's form."""
    return tuple(
        {
            "type": "function",
            "function": {
                "name": name,
                "description": render(f"agent/tools/{name}.md.j2").strip(),
                "parameters": _schema(TOOLS[name]),
            },
        }
        for name in names
    )


def usage(name: str) -> str:
    """The tool's signature in one line, as `execute_bash(command: string, timeout?: number)`."""
    schema = _schema(TOOLS[name])
    parts = (
        f"{key}{'' if key in schema['required'] else '?'}: {value['type']}"
        for key, value in schema["properties"].items()
    )
    return f"{name}({', '.join(parts)})"


def _schema(arguments: type[Arguments]) -> JsonObject:
    """The plain subset of JSON schema that every provider takes: no titles, defaults, unions."""
    full: dict[str, Any] = arguments.model_json_schema()
    kept = ("type", "description", "enum", "items")
    properties = {
        name: {key: value[key] for key in kept if key in value}
        for name, value in full["properties"].items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": full["required"],
        "additionalProperties": False,
    }
