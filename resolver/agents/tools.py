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


TAG = "mcp"
MAX_NAME = 64
"""Maximum length of a tool name that all providers accept, in characters."""

_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_HASH = 8


def native_names(tools: Sequence[McpTool]) -> dict[str, McpTool]:
    """Return the tools by the unique names under which a model calls them: `server__tool`.

    A name that is too long or already taken ends in a hash of the server's and the tool's names.
    """
    found: dict[str, McpTool] = {}
    for tool in tools:
        name = _ODD.sub("_", f"{tool.server}__{tool.name}")
        if len(name) > MAX_NAME or name in found:
            whole = f"{tool.server}\0{tool.name}".encode(errors="replace")
            mark = hashlib.sha256(whole).hexdigest()[:_HASH]
            name = f"{name[: MAX_NAME - _HASH - 1]}_{mark}"
        found.setdefault(name, tool)
    return found


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


def call_of(tool: McpTool, arguments: JsonObject) -> McpCall | tuple[str, ...]:
    """Return the action, or the problems with the arguments.

    The arguments are not validated against the tool's schema: that is up to the server.
    """
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return ("an argument holds half of a surrogate pair (\\ud800 to \\udfff), not a character",)
    return McpCall(server=tool.server, name=tool.name, arguments=arguments)


def call_of_tag(block: Block, tools: Sequence[McpTool]) -> McpCall | tuple[str, ...]:
    """Return the action of `<mcp server="..." tool="...">{...}</mcp>`, or the problems with it."""
    given = dict(block.attributes)
    server, name = given.pop("server", ""), given.pop("tool", "")
    if given or not server or not name:
        return (f'<{TAG}> has two attributes: server="NAME" and tool="NAME"',)
    tool = next((t for t in tools if t.server == server and t.name == name), None)
    if tool is None:
        return (f"there is no tool {name[:100]!r} of a server {server[:100]!r}",)
    try:
        arguments: Any = json.loads(block.content, strict=False) if block.content.strip() else {}
    except (ValueError, RecursionError) as error:
        return (f"the content of <{TAG}> is not valid JSON: {error}",)
    if not isinstance(arguments, dict):
        return (f"the content of <{TAG}> is not one JSON object: {tool_signature(name, tool)}",)
    return call_of(tool, arguments)


def write_call(action: McpCall) -> str:
    """Return the action in the tag dialect."""
    content = json.dumps(action.arguments, ensure_ascii=False)
    return write_block(TAG, {"server": action.server, "tool": action.name}, f"\n{content}\n")


def tools_text(tools: Sequence[McpTool], dialect: Literal["tools", "tags"]) -> str:
    """Return the section of the system prompt about MCP tools, "" if there are none."""
    if not tools:
        return ""
    if dialect == "tools":
        return render("agent/mcp_native.md.j2").strip()
    example = McpCall(server=tools[0].server, name=tools[0].name, arguments={})
    listed = [
        (tool, json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":")))
        for tool in tools
    ]
    return render("agent/mcp_tags.md.j2", tools=listed, example=write_call(example)).strip()


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


_TOOLS: dict[type[ActionBase], str] = {
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

Actions that are not listed are available to every agent; `_tool_of` handles `Finish`.
"""

_EDITS = (a.FileWrite, a.FileEdit)


def refuse_if_unavailable(
    action: ActionBase, tools: Collection[str], shown: Collection[str], *, edits: bool = True
) -> ActionBase:
    """Return the action, or an `Invalid` that refuses it with a reason.

    tools: the tools of the agent.
    shown: their names as the agent writes them.
    edits: False if the agent may not edit files; it may still view them.
    """
    tool = _tool_of(action)
    looks = isinstance(action, a.FileRead) and not edits
    forbidden = isinstance(action, _EDITS) and not edits
    if not forbidden and (tool is None or tool in tools or looks):
        return action
    return refuse_unavailable(action, shown, is_edit=forbidden and tool in tools)


def _tool_of(action: ActionBase) -> str | None:
    if isinstance(action, a.Finish):
        return "submit_review" if action.verdict else "report_places" if action.places else None
    return _TOOLS.get(type(action))


def refuse_unavailable(
    action: ActionBase, shown: Collection[str], *, is_edit: bool = False
) -> a.Invalid:
    """Return an `Invalid` that tells the agent why the action is refused.

    shown: the tools of the agent, as it writes them.
    is_edit: the agent has the tool but may not edit with it.
    """
    reason = render("agent/not_offered.md.j2", tools=shown, is_edit=is_edit).strip()
    return a.Invalid(
        reason=reason, thought=action.thought, tool_call=action.tool_call, reply=action.reply
    )
