"""Tools of MCP servers as a model sees them, in both dialects, and the action of each call.

All of it comes of the tools alone, which stand in the log: a reply always gives the same actions.
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
"""Characters of a tool's name that every provider takes."""

_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_HASH = 8


def native_names(tools: Sequence[McpTool]) -> dict[str, McpTool]:
    """The tools by the names that a model calls them by: `server__tool`, each only once. A name
    that is too long, or that another one has, ends in a hash of its own."""
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
    """Their specifications, in OpenAI's form."""
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
    """How it is called, in one line, as `docs__search(query: string, limit?: integer)`."""
    properties = tool.parameters.get("properties") or {}
    required = tool.parameters.get("required") or ()
    parts = (
        f"{key}{'' if key in required else '?'}: {value.get('type', 'string')}"
        for key, value in properties.items()
    )
    return f"{name}({', '.join(parts)})"


def call_of(tool: McpTool, arguments: JsonObject) -> McpCall | tuple[str, ...]:
    """The action, or what is wrong. What fits its schema is for the server to say."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return ("an argument holds half of a surrogate pair (\\ud800 to \\udfff), not a character",)
    return McpCall(server=tool.server, name=tool.name, arguments=arguments)


def call_of_tag(block: Block, tools: Sequence[McpTool]) -> McpCall | tuple[str, ...]:
    """The action of `<mcp server="..." tool="...">{...}</mcp>`, or what is wrong with it."""
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
    """The action in the tag dialect."""
    content = json.dumps(action.arguments, ensure_ascii=False)
    return write_block(TAG, {"server": action.server, "tool": action.name}, f"\n{content}\n")


def tools_text(tools: Sequence[McpTool], dialect: Literal["tools", "tags"]) -> str:
    """What the system prompt says of them; "" when there are none."""
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
