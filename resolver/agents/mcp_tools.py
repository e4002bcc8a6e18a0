"""MCP tools as a model sees them in both dialects, and the conversion of calls to actions.

Everything here depends only on the tools, which are in the event log, so that a logged reply always
gives the same actions.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from resolver.agents.markup import Block, write_block
from resolver.config.templates import render
from resolver.events.actions import McpCall
from resolver.models.run import JsonObject, McpTool

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
