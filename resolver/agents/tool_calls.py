"""Conversion of native tool calls to actions.

It never fails: a call that can't be read becomes an `Invalid`, whose reason says what was wrong and
shows the right form.
"""

import difflib
import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from resolver.agents.arguments import TOOLS
from resolver.agents.mcp_tools import call_of, native_names, tool_signature
from resolver.agents.tools import TOOL_NAMES, tool_usage
from resolver.config.templates import render
from resolver.events.actions import Invalid
from resolver.events.base import ActionBase, ToolCall
from resolver.memory.text import truncate_middle
from resolver.models.run import JsonObject, McpTool, RequestedToolCall

EXCERPT = 300
"""Maximum length of a quotation of the model's own text in feedback, in characters."""


def action_of_call(
    call: RequestedToolCall,
    cut: bool = False,
    mcp: Sequence[McpTool] = (),
    offered: Sequence[str] = (),
) -> ActionBase:
    """Return the action that one tool call asks for.

    cut: the provider ended the reply at its output limit, so the arguments may be incomplete.
    mcp: the MCP tools that were offered.
    offered: the agent's tools, listed in the feedback on a call that can't be read; all tools if
    empty.
    """
    arguments = _object_of(call.arguments)
    others = native_names(mcp)
    theirs = others.get(call.name)
    outcome: ActionBase | tuple[str, ...]
    if isinstance(arguments, str):
        outcome = (arguments,)
    elif theirs is not None:
        outcome = call_of(theirs, arguments)
    else:
        outcome = action_of(call.name, arguments, tuple(others))
    if isinstance(outcome, tuple):
        reason = render(
            "agent/invalid_call.md.j2",
            tool=call.name[:EXCERPT],
            problems=outcome,
            usage=_usage(call.name, theirs),
            tools=offered or (*TOOL_NAMES, *others),
            cut=cut,
        )
        outcome = Invalid(reason=reason.strip())
    origin = ToolCall(id=call.id, name=call.name, arguments=call.arguments)
    return outcome.model_copy(update={"tool_call": origin})


def action_of(
    name: str, arguments: JsonObject, others: tuple[str, ...] = ()
) -> ActionBase | tuple[str, ...]:
    """Return the action of a tool call, or the problems with it.

    others: names of further tools to suggest for an unknown name.
    """
    tool = TOOLS.get(name)
    if tool is None:
        hint = did_you_mean(name, (*TOOL_NAMES, *others))
        return (f"there is no tool {truncate_middle(name, EXCERPT)!r}{hint}",)
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return ("an argument holds half of a surrogate pair (\\ud800 to \\udfff), not a character",)
    try:
        return tool.model_validate(arguments).action()
    except ValidationError as error:
        return tuple(_problem(e, list(tool.model_fields)) for e in error.errors())


def _usage(name: str, theirs: McpTool | None) -> str:
    if theirs is not None:
        return tool_signature(name, theirs)
    return tool_usage(name) if name in TOOLS else ""


def did_you_mean(name: str, known: tuple[str, ...] | list[str]) -> str:
    """Return a question that suggests the most similar known name, "" if none is similar."""
    near = difflib.get_close_matches(name[:EXCERPT], known, 1, 0.5)
    near += [k for k in known if len(name) > 2 and name in k]
    return f"; did you mean {near[0]!r}?" if near else ""


def _object_of(text: str) -> JsonObject | str:
    """Return the arguments as an object, or the problem with them. Empty text means none."""
    if not text.strip():
        return {}
    try:
        # not strict: models write raw newlines in strings, which is invalid JSON but unambiguous
        value: Any = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        return f"the arguments are not valid JSON: {error}: {truncate_middle(text, EXCERPT)}"
    if not isinstance(value, dict):
        return f"the arguments are not a JSON object: {truncate_middle(text, EXCERPT)}"
    return value


def _problem(error: Any, known: list[str]) -> str:
    name = str(error["loc"][0]) if error["loc"] else ""
    match error["type"]:
        case "missing":
            return f"{name} is missing"
        case "extra_forbidden":
            shown = truncate_middle(name, EXCERPT)
            return f"there is no argument {shown!r}{did_you_mean(name, known)}"
        case _:
            message = error["msg"].removeprefix("Value error, ")
            got = f" (got {truncate_middle(repr(error['input']), 80)})" if name else ""
            return f"{name}: {message}{got}" if name else str(message)
