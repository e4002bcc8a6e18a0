"""The tools as they are offered to a model: names, descriptions, JSON schemas."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from resolver.agents.arguments import TOOLS
from resolver.config.templates import render
from resolver.models.run import JsonObject

TOOL_NAMES = tuple(TOOLS)

REPORTING = ("message", "task_completed")
"""What the `finish` of an agent takes whose words are its whole result."""

THREADS = "threads"
"""What a `finish` takes where conversations on lines were asked about."""

REVIEWING = ("review_comment", "submit_review")
"""What only a reviewer has."""

LOCATING = ("search_code", "explore_code", "report_places")
"""What only the agent that looks for places has: what is edited is not in the index, so it would
mislead one that edits."""


@dataclass(frozen=True)
class DelegateAgent:
    """An agent that work can be handed to. description: one line."""

    name: str
    description: str


def available_tools(
    may_delegate: bool,
    may_browse: bool = False,
    may_recall: bool = False,
    may_remember: bool = False,
) -> tuple[str, ...]:
    """The names of the tools of an agent that changes code, in their order."""
    there = {
        "delegate": may_delegate,
        "browser": may_browse,
        "recall": may_recall,
        "remember": may_remember,
    }
    absent = {*REVIEWING, *LOCATING, *(name for name, may in there.items() if not may)}
    return tuple(name for name in TOOL_NAMES if name not in absent)


@cache
def tool_specs(
    names: tuple[str, ...] = TOOL_NAMES,
    colleagues: tuple[DelegateAgent, ...] = (),
    answers: bool = False,
    threads: bool = False,
) -> tuple[JsonObject, ...]:
    """The native tool specifications, in OpenAI's form.

    colleagues: whom `delegate` may name. answers: the agent's words are its result, no change is.
    threads: it was asked about conversations on lines, which a finish answers.
    """
    known = {"colleagues": colleagues, "answers": answers}
    return tuple(
        {
            "type": "function",
            "function": {
                "name": name,
                "description": render(f"agent/tools/{name}.md.j2", **known).strip(),
                "parameters": _fewer(name, threads) if answers else _schema(name, threads),
            },
        }
        for name in names
    )


def tool_usage(name: str) -> str:
    """The tool's signature in one line, as `execute_bash(command: string, timeout?: number)`."""
    schema = _schema(name)
    parts = (
        f"{key}{'' if key in schema['required'] else '?'}: {value['type']}"
        for key, value in schema["properties"].items()
    )
    return f"{name}({', '.join(parts)})"


def _schema(name: str, threads: bool = False) -> JsonObject:
    """The plain subset of JSON schema that every provider takes: no titles, defaults, unions."""
    full: dict[str, Any] = TOOLS[name].model_json_schema()
    kept = ("type", "description", "enum", "items")
    absent = set() if threads else {THREADS}
    properties = {
        name: {key: value[key] for key in kept if key in value}
        for name, value in full["properties"].items()
        if name not in absent
    }
    return {
        "type": "object",
        "properties": properties,
        "required": full["required"],
        "additionalProperties": False,
    }


def _fewer(name: str, threads: bool = False) -> JsonObject:
    """What is left of it for an agent that changes nothing."""
    match name:
        case "finish":
            return _report_schema(threads)
        case "str_replace_editor":
            return _view_schema()
        case _:
            return _schema(name)


def _report_schema(threads: bool) -> JsonObject:
    """That of `finish`, without the parts of a pull request's description."""
    full = _schema("finish", threads)
    kept = (*REPORTING, THREADS) if threads else REPORTING
    properties = {name: full["properties"][name] for name in kept}
    properties["message"] = {**properties["message"], "description": "The whole answer or report."}
    done = "false when it could not, or only partly, be done."
    properties["task_completed"] = {**properties["task_completed"], "description": done}
    return {**full, "properties": properties}


def _view_schema() -> JsonObject:
    """That of the editor, for who may only look."""
    full = _schema("str_replace_editor")
    properties = {name: full["properties"][name] for name in ("command", "path", "view_range")}
    properties["command"] = {**properties["command"], "enum": ["view"]}
    return {**full, "properties": properties}
