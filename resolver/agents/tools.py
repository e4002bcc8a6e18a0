"""The tools as they are offered to a model: names, descriptions and JSON schemas."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from resolver.agents.arguments import TOOLS
from resolver.config.templates import render
from resolver.models.run import JsonObject

TOOL_NAMES = tuple(TOOLS)

REPORTING = ("message", "task_completed")
"""Arguments of `finish` for agents whose result is their final message."""

THREADS = "threads"
"""Argument of `finish` that answers the review threads that a run was asked about."""

REVIEWING = ("review_comment", "submit_review")
"""Tools of the reviewer only."""

LOCATING = ("search_code", "explore_code", "report_places")
"""Tools of LocAgent only.

The index does not contain edits, so it would mislead an agent that edits.
"""


@dataclass(frozen=True)
class DelegateAgent:
    """An agent that can be delegated to.

    description: one line.
    """

    name: str
    description: str


def available_tools(
    may_delegate: bool,
    may_browse: bool = False,
    may_recall: bool = False,
    may_remember: bool = False,
) -> tuple[str, ...]:
    """Return the names of the tools of an agent that changes code, in the order of `TOOL_NAMES`."""
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
    """Return the native tool specifications in OpenAI's format.

    colleagues: agents that `delegate` accepts.
    answers: the result of the agent is its final message; it publishes no change.
    threads: the run was asked about review threads, which `finish` answers.
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
    """Return the signature of a tool, like `execute_bash(command: string, timeout?: number)`."""
    schema = _schema(name)
    parts = (
        f"{key}{'' if key in schema['required'] else '?'}: {value['type']}"
        for key, value in schema["properties"].items()
    )
    return f"{name}({', '.join(parts)})"


def _schema(name: str, threads: bool = False) -> JsonObject:
    """Return the arguments of a tool in the subset of JSON Schema that all providers accept.

    That subset has no titles, defaults or unions. The class docstrings of the arguments are left
    out.
    """
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
    """Return the schema of a tool for an agent that changes nothing."""
    match name:
        case "finish":
            return _report_schema(threads)
        case "str_replace_editor":
            return _view_schema()
        case _:
            return _schema(name)


def _report_schema(threads: bool) -> JsonObject:
    """Return the schema of `finish` without the sections of a pull request's description."""
    full = _schema("finish", threads)
    kept = (*REPORTING, THREADS) if threads else REPORTING
    properties = {name: full["properties"][name] for name in kept}
    properties["message"] = {**properties["message"], "description": "The whole answer or report."}
    done = "false when it could not, or only partly, be done."
    properties["task_completed"] = {**properties["task_completed"], "description": done}
    return {**full, "properties": properties}


def _view_schema() -> JsonObject:
    """Return the schema of the editor, reduced to the command `view`."""
    full = _schema("str_replace_editor")
    properties = {name: full["properties"][name] for name in ("command", "path", "view_range")}
    properties["command"] = {**properties["command"], "enum": ["view"]}
    return {**full, "properties": properties}
