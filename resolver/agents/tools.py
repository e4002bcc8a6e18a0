"""The tools as they are offered to a model, and the conversion of native tool calls to actions.

The built-in tools come from `arguments.py`, those of MCP servers from the event log, so that a
logged reply always gives the same actions. The conversion never fails: a call that can't be read
becomes an `Invalid`, whose reason says what was wrong and shows the right form. Actions that an
agent may not do (unavailable tools, edits by read-only agents) are refused.
"""

import difflib
import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import ValidationError

from resolver.agents.arguments import TOOLS
from resolver.agents.markup import Block, write_block
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events.actions import Invalid, McpCall
from resolver.events.base import ActionBase, ToolCall
from resolver.models.run import JsonObject, McpTool, RequestedToolCall
from resolver.models.truncate import truncate_middle

TOOL_NAMES = tuple(TOOLS)

REPORT_ARGUMENTS = ("message", "task_completed")
"""Arguments of `finish` for agents whose result is their final message."""

THREADS_ARGUMENT = "threads"
"""Argument of `finish` that answers the review threads that a run was asked about."""

REVIEWER_ONLY_TOOLS = ("review_comment", "submit_review")
"""Tools of the reviewer only."""

LOC_ONLY_TOOLS = ("search_code", "explore_code", "report_places")
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
    is_available = {
        "delegate": may_delegate,
        "browser": may_browse,
        "recall": may_recall,
        "remember": may_remember,
    }
    unavailable = {
        *REVIEWER_ONLY_TOOLS,
        *LOC_ONLY_TOOLS,
        *(name for name, available in is_available.items() if not available),
    }
    return tuple(name for name in TOOL_NAMES if name not in unavailable)


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
    values = {"colleagues": colleagues, "answers": is_read_only}
    return tuple(
        {
            "type": "function",
            "function": {
                "name": name,
                "description": render(f"agent/tools/{name}.md.j2", **values).strip(),
                "parameters": _read_only_schema(name, has_threads)
                if is_read_only
                else _schema(name, has_threads),
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


def _schema(name: str, has_threads: bool = False) -> JsonObject:
    """Return the arguments of a tool in the subset of JSON Schema that all providers accept.

    That subset has no titles, defaults or unions. The class docstrings of the arguments are left
    out.
    """
    schema: dict[str, Any] = TOOLS[name].model_json_schema()
    kept_keys = ("type", "description", "enum", "items")
    hidden_arguments = set() if has_threads else {THREADS_ARGUMENT}
    properties = {
        name: {key: value[key] for key in kept_keys if key in value}
        for name, value in schema["properties"].items()
        if name not in hidden_arguments
    }
    return {
        "type": "object",
        "properties": properties,
        "required": schema["required"],
        "additionalProperties": False,
    }


def _read_only_schema(name: str, has_threads: bool = False) -> JsonObject:
    """Return the schema of a tool for an agent that changes nothing."""
    match name:
        case "finish":
            return _report_schema(has_threads)
        case "str_replace_editor":
            return _view_schema()
        case _:
            return _schema(name)


def _report_schema(has_threads: bool) -> JsonObject:
    """Return the schema of `finish` without the sections of a pull request's description."""
    schema = _schema("finish", has_threads)
    kept_arguments = (*REPORT_ARGUMENTS, THREADS_ARGUMENT) if has_threads else REPORT_ARGUMENTS
    properties = {name: schema["properties"][name] for name in kept_arguments}
    properties["message"] = {**properties["message"], "description": "The whole answer or report."}
    completed_description = "false when it could not, or only partly, be done."
    properties["task_completed"] = {
        **properties["task_completed"],
        "description": completed_description,
    }
    return {**schema, "properties": properties}


def _view_schema() -> JsonObject:
    """Return the schema of the editor, reduced to the command `view`."""
    schema = _schema("str_replace_editor")
    properties = {name: schema["properties"][name] for name in ("command", "path", "view_range")}
    properties["command"] = {**properties["command"], "enum": ["view"]}
    return {**schema, "properties": properties}


MCP_TAG = "mcp"
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


def tool_signature(name: str, tool: McpTool) -> str:
    """Return the signature of a tool, like `docs__search(query: string, limit?: integer)`."""
    properties = tool.parameters.get("properties") or {}
    required = tool.parameters.get("required") or ()
    parts = (
        f"{key}{'' if key in required else '?'}: {value.get('type', 'string')}"
        for key, value in properties.items()
    )
    return f"{name}({', '.join(parts)})"


def build_mcp_call(tool: McpTool, arguments: JsonObject) -> McpCall | tuple[str, ...]:
    """Return the action, or the problems with the arguments.

    The arguments are not validated against the tool's schema: that is up to the server.
    """
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return ("an argument holds half of a surrogate pair (\\ud800 to \\udfff), not a character",)
    return McpCall(server=tool.server, name=tool.name, arguments=arguments)


def parse_mcp_tag(block: Block, tools: Sequence[McpTool]) -> McpCall | tuple[str, ...]:
    """Return the action of `<mcp server="..." tool="...">{...}</mcp>`, or the problems with it."""
    attributes = dict(block.attributes)
    server, name = attributes.pop("server", ""), attributes.pop("tool", "")
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
        return (f"the content of <{MCP_TAG}> is not one JSON object: {tool_signature(name, tool)}",)
    return build_mcp_call(tool, arguments)


def write_call(action: McpCall) -> str:
    """Return the action in the tag dialect."""
    content = json.dumps(action.arguments, ensure_ascii=False)
    return write_block(MCP_TAG, {"server": action.server, "tool": action.name}, f"\n{content}\n")


def tools_text(tools: Sequence[McpTool], dialect: Literal["tools", "tags"]) -> str:
    """Return the section of the system prompt about MCP tools, "" if there are none."""
    if not tools:
        return ""
    if dialect == "tools":
        return render("agent/mcp_native.md.j2").strip()
    example = McpCall(server=tools[0].server, name=tools[0].name, arguments={})
    tool_schemas = [
        (tool, json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":")))
        for tool in tools
    ]
    return render("agent/mcp_tags.md.j2", tools=tool_schemas, example=write_call(example)).strip()


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
        hint = did_you_mean(name, (*TOOL_NAMES, *other_names))
        return (f"there is no tool {truncate_middle(name, MAX_QUOTE_LENGTH)!r}{hint}",)
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return ("an argument holds half of a surrogate pair (\\ud800 to \\udfff), not a character",)
    try:
        return tool.model_validate(arguments).action()
    except ValidationError as error:
        return tuple(_describe_problem(e, list(tool.model_fields)) for e in error.errors())


def _usage(name: str, mcp_tool: McpTool | None) -> str:
    if mcp_tool is not None:
        return tool_signature(name, mcp_tool)
    return tool_usage(name) if name in TOOLS else ""


def did_you_mean(name: str, known: tuple[str, ...] | list[str]) -> str:
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
    name = str(error["loc"][0]) if error["loc"] else ""
    match error["type"]:
        case "missing":
            return f"{name} is missing"
        case "extra_forbidden":
            quoted_name = truncate_middle(name, MAX_QUOTE_LENGTH)
            return f"there is no argument {quoted_name!r}{did_you_mean(name, known)}"
        case _:
            message = error["msg"].removeprefix("Value error, ")
            received = f" (got {truncate_middle(repr(error['input']), 80)})" if name else ""
            return f"{name}: {message}{received}" if name else str(message)


_TOOL_BY_ACTION: dict[type[ActionBase], str] = {
    a.CmdRun: "execute_bash",
    a.IPythonRunCell: "execute_ipython_cell",
    a.FileRead: "str_replace_editor",
    a.FileWrite: "str_replace_editor",
    a.FileEdit: "str_replace_editor",
    a.PlanUpdate: "plan",
    a.Delegate: "delegate",
    a.BrowseInteractive: "browser",
    a.Recall: "recall",
    a.Remember: "remember",
    a.CodeSearch: "search_code",
    a.CodeExplore: "explore_code",
    a.ReviewComment: "review_comment",
}
"""The tool of each action.

Actions that are not listed are available to every agent; `_find_tool` handles `Finish`.
"""

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
    tool = _find_tool(action)
    is_view = isinstance(action, a.FileRead) and not may_edit
    forbidden = isinstance(action, _EDIT_ACTIONS) and not may_edit
    if not forbidden and (tool is None or tool in tools or is_view):
        return action
    return refuse_unavailable(action, tool_names, is_edit=forbidden and tool in tools)


def _find_tool(action: ActionBase) -> str | None:
    if isinstance(action, a.Finish):
        return "submit_review" if action.verdict else "report_places" if action.places else None
    return _TOOL_BY_ACTION.get(type(action))


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
