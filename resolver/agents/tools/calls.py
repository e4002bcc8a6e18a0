"""The conversion of calls to actions, those of MCP servers' tools too.

A call that can't be read, or of a tool that the agent does not have, becomes an `Invalid`, whose
reason says what was wrong and shows the right form. The tools that were offered come from the event
log, so that a logged reply always gives the same actions.
"""

import difflib
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import ValidationError

from resolver.agents.tools.base import SECURITY_RISK
from resolver.agents.tools.registry import TOOL_NAMES, TOOLS, tool_usage
from resolver.config.templates import render
from resolver.events.actions import Invalid, McpCall
from resolver.events.base import ActionBase, ToolCall
from resolver.models.base import JsonObject
from resolver.models.run import McpTool, RequestedToolCall
from resolver.models.truncate import truncate_middle

BROWSER = "browser"
"""Name of the MCP server that drives the run's browser."""
MAX_TOOL_NAME_LENGTH = 64
"""Maximum length of a tool name that all providers accept, in characters."""

_DISALLOWED_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")
_HASH_LENGTH = 8


def native_names(tools: Sequence[McpTool]) -> dict[str, McpTool]:
    """Return the tools by the unique names under which a model calls them: `server__tool`.

    A name that is too long or already taken ends in a hash of the server's and the tool's names.
    """
    tools_by_name: dict[str, McpTool] = {}
    for tool in tools:
        name = _DISALLOWED_CHARACTERS.sub("_", f"{tool.server}__{tool.name}")
        if len(name) > MAX_TOOL_NAME_LENGTH or name in tools_by_name:
            full_name = f"{tool.server}\0{tool.name}".encode(errors="replace")
            digest = hashlib.sha256(full_name).hexdigest()[:_HASH_LENGTH]
            name = f"{name[: MAX_TOOL_NAME_LENGTH - _HASH_LENGTH - 1]}_{digest}"
        tools_by_name.setdefault(name, tool)
    return tools_by_name


def native_specs(tools: Sequence[McpTool]) -> tuple[JsonObject, ...]:
    """Return the tool specifications in OpenAI's format."""
    return tuple(
        {
            "type": "function",
            "function": {
                "name": name,
                "description": render("agent/mcp_tool.md.j2", tool=tool).strip(),
                "parameters": tool.parameters,
            },
        }
        for name, tool in native_names(tools).items()
    )


class UnreadableCall(Exception):
    """The reasons why a call can't be read, worded for the model."""


def _check_characters(arguments: Mapping[str, Any]) -> None:
    """Raise UnreadableCall if the arguments hold a surrogate, which UTF-8 has no form of."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UnreadableCall(
            "an argument holds half of a surrogate pair (\\ud800 to \\udfff), not a character"
        ) from None


def mcp_section(tools: Sequence[McpTool], dialect: Literal["tools", "tags"]) -> str:
    """Return the section of the system prompt about MCP tools, empty if there are none."""
    if not tools:
        return ""
    has_browser = any(tool.server == BROWSER for tool in tools)
    named = native_names(tools)
    return render("agent/mcp.md.j2", tools=named, has_browser=has_browser, dialect=dialect).strip()


MAX_QUOTE_LENGTH = 300
"""Maximum length of a quotation of the model's own text in feedback, in characters."""


def parse_tool_call(
    call: RequestedToolCall,
    is_truncated: bool = False,
    mcp: Sequence[McpTool] = (),
    tool_names: Sequence[str] = (),
) -> ActionBase:
    """Return the action that one tool call asks for.

    is_truncated: the provider ended the reply at its output limit, so the arguments may be
    incomplete.
    mcp: the MCP tools that were offered.
    tool_names: the agent's tools; empty for all.
    """
    mcp_tools = native_names(mcp)
    action: ActionBase
    try:
        action = parse_call(call.name, parse_object(call.arguments), mcp_tools, tool_names)
    except UnreadableCall as fault:
        reason = render(
            "agent/invalid_call.md.j2",
            tool=call.name[:MAX_QUOTE_LENGTH],
            problems=fault.args,
            usage=_usage(call.name, mcp_tools, tool_names),
            tools=tool_names or (*TOOL_NAMES, *mcp_tools),
            cut=is_truncated,
        )
        action = Invalid(reason=reason.strip())
    tool_call = ToolCall(id=call.id, name=call.name, arguments=call.arguments)
    return action.model_copy(update={"tool_call": tool_call})


def parse_call(
    name: str,
    arguments: JsonObject,
    mcp_tools: Mapping[str, McpTool],
    tool_names: Sequence[str] = (),
) -> ActionBase:
    """Return the action of a call in either dialect. Raises UnreadableCall.

    The arguments of an MCP tool are not validated against its schema: that is up to the server.

    mcp_tools: by the names under which a model calls them. tool_names: the agent's tools; empty for
    all.
    """
    known = tool_names or (*TOOL_NAMES, *mcp_tools)
    mcp_tool, tool = mcp_tools.get(name), TOOLS.get(name)
    if name not in known or (mcp_tool is None and tool is None):
        quoted_name = truncate_middle(name, MAX_QUOTE_LENGTH)
        hint = suggest_name(name, known)
        raise UnreadableCall(f"you have no tool {quoted_name!r}, so nothing was executed{hint}")
    _check_characters(arguments)
    accepted = tool.arguments.model_fields if tool else _properties(mcp_tool)
    if SECURITY_RISK not in accepted:  # models also rate calls of tools that take no rating
        arguments = {key: value for key, value in arguments.items() if key != SECURITY_RISK}
    if mcp_tool is not None:
        return McpCall(server=mcp_tool.server, name=mcp_tool.name, arguments=arguments)
    assert tool is not None
    try:
        return tool.arguments.model_validate(arguments).action()
    except ValidationError as error:
        problems = (_describe_problem(e, list(accepted)) for e in error.errors())
        raise UnreadableCall(*problems) from None


def _properties(tool: McpTool | None) -> Mapping[str, Any]:
    return (tool.parameters.get("properties") if tool else None) or {}


def _usage(name: str, mcp_tools: Mapping[str, McpTool], tool_names: Sequence[str]) -> str | None:
    """Return the form of a call of the tool; None if the agent does not have it."""
    if name in mcp_tools:
        return tool_usage(name, mcp_tools[name].parameters)
    if name not in (tool_names or TOOL_NAMES):
        return None
    return tool_usage(name, TOOLS[name].arguments.offered_schema())


def suggest_name(name: str, known: Sequence[str]) -> str:
    """Return a question that suggests the most similar known name, "" if none is similar."""
    matches = difflib.get_close_matches(name[:MAX_QUOTE_LENGTH], known, 1, 0.5)
    matches += [candidate for candidate in known if len(name) > 2 and name in candidate]
    return f"; did you mean {matches[0]!r}?" if matches else ""


def parse_object(text: str) -> JsonObject:
    """Return the arguments as an object; empty text means none. Raises UnreadableCall."""
    quoted = truncate_middle(text, MAX_QUOTE_LENGTH)
    try:
        # not strict: models write raw newlines in strings, which is invalid JSON but unambiguous
        value: Any = json.loads(text, strict=False) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise UnreadableCall(f"the arguments are not valid JSON: {error}: {quoted}") from None
    if not isinstance(value, dict):
        raise UnreadableCall(f"the arguments are not a JSON object: {quoted}")
    return value


def _describe_problem(error: Any, known: list[str]) -> str:
    name = str(error["loc"][0]) if error["loc"] else None
    if name is None:
        return str(error["msg"].removeprefix("Value error, "))
    match error["type"]:
        case "missing":
            return f"{name} is missing"
        case "extra_forbidden":
            quoted_name = truncate_middle(name, MAX_QUOTE_LENGTH)
            return f"there is no argument {quoted_name!r}{suggest_name(name, known)}"
        case _:
            message = error["msg"].removeprefix("Value error, ")
            return f"{name}: {message} (got {truncate_middle(repr(error['input']), 80)})"
