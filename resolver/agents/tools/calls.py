"""The conversion of calls to actions, those of MCP servers' tools too, and the refusal of actions.

The conversion never fails: a call that can't be read becomes an `Invalid`, whose reason says what
was wrong and shows the right form. The tools of MCP servers come from the event log, so that a
logged reply always gives the same actions. Actions that an agent may not do (unavailable tools,
edits by read-only agents) are refused.
"""

import difflib
import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from pydantic import ValidationError

from resolver.agents.markup import Block, write_block
from resolver.agents.tools.base import SECURITY_RISK
from resolver.agents.tools.registry import REQUIRED_TOOLS, TOOL_NAMES, TOOLS, tool_of, tool_usage
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events.actions import Invalid, McpCall
from resolver.events.base import ActionBase, ToolCall
from resolver.models.base import JsonObject
from resolver.models.run import McpTool, RequestedToolCall
from resolver.models.truncate import truncate_middle

MCP_TAG = "mcp"

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


def build_mcp_call(tool: McpTool, arguments: JsonObject) -> McpCall | tuple[str, ...]:
    """Return the action, or the problems with the arguments.

    The arguments are not validated against the tool's schema: that is up to the server.
    """
    arguments = _without_unknown_rating(arguments, tool.parameters.get("properties") or {})
    return _find_surrogates(arguments) or McpCall(
        server=tool.server, name=tool.name, arguments=arguments
    )


def _without_unknown_rating(arguments: JsonObject, known: Collection[str]) -> JsonObject:
    """Return the arguments without the rating that models also give to tools that take none."""
    if SECURITY_RISK in known:
        return arguments
    return {name: value for name, value in arguments.items() if name != SECURITY_RISK}


def _find_surrogates(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the problem with arguments that hold a surrogate, which UTF-8 has no form of."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return ("an argument holds half of a surrogate pair (\\ud800 to \\udfff), not a character",)
    return ()


def parse_mcp_tag(block: Block, tools: Sequence[McpTool]) -> McpCall | tuple[str, ...]:
    """Return the action of `<mcp server="..." tool="...">{...}</mcp>`, or the problems with it."""
    attributes = dict(block.attributes)
    server, name = attributes.pop("server", ""), attributes.pop("tool", "")
    attributes.pop(SECURITY_RISK, None)
    if attributes or not server or not name:
        return (f'<{MCP_TAG}> has two attributes: server="NAME" and tool="NAME"',)
    tool = next((t for t in tools if t.server == server and t.name == name), None)
    if tool is None:
        return (f"there is no tool {name[:100]!r} of a server {server[:100]!r}",)
    try:
        arguments: Any = json.loads(block.content, strict=False) if block.content.strip() else {}
    except (ValueError, RecursionError) as error:
        return (f"the content of <{MCP_TAG}> is not valid JSON: {error}",)
    if not isinstance(arguments, dict):
        usage = tool_usage(name, tool.parameters)
        return (f"the content of <{MCP_TAG}> is not one JSON object: {usage}",)
    return build_mcp_call(tool, arguments)


def write_call(action: McpCall) -> str:
    """Return the action in the tag dialect."""
    content = json.dumps(action.arguments, ensure_ascii=False)
    return write_block(MCP_TAG, {"server": action.server, "tool": action.name}, f"\n{content}\n")


def tools_text(tools: Sequence[McpTool], dialect: Literal["tools", "tags"]) -> str:
    """Return the section of the system prompt about MCP tools, empty if there are none."""
    if not tools:
        return ""
    has_browser = any(tool.server == BROWSER for tool in tools)
    if dialect == "tools":
        return render("agent/mcp_native.md.j2", has_browser=has_browser).strip()
    example = McpCall(server=tools[0].server, name=tools[0].name, arguments={})
    tool_schemas = [
        (tool, json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":")))
        for tool in tools
    ]
    return render(
        "agent/mcp_tags.md.j2",
        tools=tool_schemas,
        example=write_call(example),
        has_browser=has_browser,
    ).strip()


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
    tool_names: the agent's tools, listed in the feedback on a call that can't be read; all tools if
    empty.
    """
    arguments = _parse_object(call.arguments)
    mcp_tools = native_names(mcp)
    mcp_tool = mcp_tools.get(call.name)
    outcome: ActionBase | tuple[str, ...]
    if isinstance(arguments, str):
        outcome = (arguments,)
    elif mcp_tool is not None:
        outcome = build_mcp_call(mcp_tool, arguments)
    else:
        outcome = parse_action(call.name, arguments, tuple(mcp_tools))
    if isinstance(outcome, tuple):
        reason = render(
            "agent/invalid_call.md.j2",
            tool=call.name[:MAX_QUOTE_LENGTH],
            problems=outcome,
            usage=_usage(call.name, mcp_tool),
            tools=tool_names or (*TOOL_NAMES, *mcp_tools),
            cut=is_truncated,
        )
        outcome = Invalid(reason=reason.strip())
    tool_call = ToolCall(id=call.id, name=call.name, arguments=call.arguments)
    return outcome.model_copy(update={"tool_call": tool_call})


def parse_action(
    name: str, arguments: JsonObject, other_names: tuple[str, ...] = ()
) -> ActionBase | tuple[str, ...]:
    """Return the action of a tool call, or the problems with it.

    other_names: names of further tools to suggest for an unknown name.
    """
    tool = TOOLS.get(name)
    if tool is None:
        hint = suggest_name(name, (*TOOL_NAMES, *other_names))
        return (f"there is no tool {truncate_middle(name, MAX_QUOTE_LENGTH)!r}{hint}",)
    if problems := _find_surrogates(arguments):
        return problems
    arguments = _without_unknown_rating(arguments, tool.arguments.model_fields)
    try:
        return tool.arguments.model_validate(arguments).action()
    except ValidationError as error:
        known = list(tool.arguments.model_fields)
        return tuple(_describe_problem(e, known) for e in error.errors())


def _usage(name: str, mcp_tool: McpTool | None) -> str | None:
    if mcp_tool is not None:
        return tool_usage(name, mcp_tool.parameters)
    return tool_usage(name, TOOLS[name].arguments.offered_schema()) if name in TOOLS else None


def suggest_name(name: str, known: tuple[str, ...] | list[str]) -> str:
    """Return a question that suggests the most similar known name, "" if none is similar."""
    matches = difflib.get_close_matches(name[:MAX_QUOTE_LENGTH], known, 1, 0.5)
    matches += [candidate for candidate in known if len(name) > 2 and name in candidate]
    return f"; did you mean {matches[0]!r}?" if matches else ""


def _parse_object(text: str) -> JsonObject | str:
    """Return the arguments as an object, or the problem with them. Empty text means none."""
    if not text.strip():
        return {}
    try:
        # not strict: models write raw newlines in strings, which is invalid JSON but unambiguous
        value: Any = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        return (
            f"the arguments are not valid JSON: {error}: {truncate_middle(text, MAX_QUOTE_LENGTH)}"
        )
    if not isinstance(value, dict):
        return f"the arguments are not a JSON object: {truncate_middle(text, MAX_QUOTE_LENGTH)}"
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


_EDIT_ACTIONS = (a.FileWrite, a.FileEdit)


def refuse_if_unavailable(
    action: ActionBase,
    tools: Collection[str],
    tool_names: Collection[str],
    *,
    may_edit: bool = True,
) -> ActionBase:
    """Return the action, or an `Invalid` that refuses it with a reason.

    tools: the tools of the agent.
    tool_names: their names as the agent writes them.
    may_edit: False if the agent may not edit files; it may still view them.
    """
    found = tool_of(action)
    tool = found[0].name if found else None
    has_tool = tool is None or tool in tools or tool in REQUIRED_TOOLS
    is_view = isinstance(action, a.FileRead) and not may_edit
    forbidden = isinstance(action, _EDIT_ACTIONS) and not may_edit
    if not forbidden and (has_tool or is_view):
        return action
    return refuse_unavailable(action, tool_names, is_edit=forbidden and tool in tools)


def refuse_unavailable(
    action: ActionBase, tool_names: Collection[str], *, is_edit: bool = False
) -> a.Invalid:
    """Return an `Invalid` that tells the agent why the action is refused.

    tool_names: the tools of the agent, as it writes them.
    is_edit: the agent has the tool but may not edit with it.
    """
    reason = render("agent/not_offered.md.j2", tools=tool_names, is_edit=is_edit).strip()
    return a.Invalid(
        reason=reason, thought=action.thought, tool_call=action.tool_call, reply=action.reply
    )
