"""From what servers list to the tools that a model is offered: bounded, cleaned, in a fixed order.

What a server says of its tools are words of a stranger.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from resolver.mcp.schemas import Clean, reduce_schema, shorten_schema
from resolver.models.run import JsonObject, McpTool

MOST_TOOLS: Final = 40
"""Tools of all servers together."""

MOST_CHARACTERS: Final = 40_000
"""Of names, descriptions and schemas of all tools: about 10,000 tokens."""

MAX_DESCRIPTION: Final = 1_000
MAX_NAME: Final = 128

_NAME: Final = re.compile(rf"[\w./:@-]{{1,{MAX_NAME}}}")
"""What a name may be made of: no sentence, and nothing that ends an attribute."""


@dataclass(frozen=True)
class OfferedTool:
    """The tools, and for each server the names of those that did not fit or could not be read."""

    tools: tuple[McpTool, ...]
    left_out: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class ToolListing:
    """What one server lists. allows: whether a tool of that name may be used."""

    server: str
    tools: Sequence[JsonObject]
    allows: Callable[[str], bool]


def offered(listings: Iterable[ToolListing], clean: Clean) -> OfferedTool:
    """The tools that a model is offered, in the servers' order.

    clean: takes out of each text what nobody sees and what nobody may know.
    """
    tools: list[McpTool] = []
    left_out: dict[str, tuple[str, ...]] = {}
    room = MOST_CHARACTERS
    for listing in listings:
        out: list[str] = []
        seen: set[str] = set()
        for listed in listing.tools:
            name = listed.get("name")
            if not isinstance(name, str) or not listing.allows(name) or name in seen:
                continue
            seen.add(name)
            tool = _tool(listing.server, name, listed, clean)
            size = len(tool.model_dump_json()) if tool else 0
            if tool is None or len(tools) == MOST_TOOLS or size > room:
                out.append(shorten_schema(clean(name), MAX_NAME))
                continue
            room -= size
            tools.append(tool)
        if out:
            left_out[listing.server] = tuple(out)
    return OfferedTool(tuple(tools), left_out)


def _tool(server: str, name: str, listed: JsonObject, clean: Clean) -> McpTool | None:
    """None where the name itself is odd: a tool is called by it, so it stays as it is."""
    if not _NAME.fullmatch(name) or clean(name) != name:
        return None
    words = listed.get("description") or listed.get("title")
    schema = reduce_schema(listed.get("inputSchema"), clean)
    if clean(json.dumps(schema, ensure_ascii=False)) != json.dumps(schema, ensure_ascii=False):
        schema = {"type": "object", "properties": {}}
    return McpTool(
        server=server,
        name=name,
        description=shorten_schema(clean(words), MAX_DESCRIPTION) if isinstance(words, str) else "",
        parameters=schema,
    )
