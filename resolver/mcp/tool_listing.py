"""Chooses the tools that a model is offered from those that servers list.

Names, descriptions and schemas come from the servers and are not trusted: their size is limited,
they are cleaned, and their order is fixed.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from resolver.mcp.schemas import Clean, reduce_schema, shorten_schema
from resolver.models.run import JsonObject, McpTool

MOST_TOOLS: Final = 40
"""Limit of the number of tools, over all servers."""

MOST_CHARACTERS: Final = 40_000
"""Limit of the names, descriptions and schemas of all tools in characters: about 10,000 tokens."""

MAX_DESCRIPTION: Final = 1_000
MAX_NAME: Final = 128

_NAME: Final = re.compile(rf"[\w./:@-]{{1,{MAX_NAME}}}")
"""Pattern of a tool's name. It excludes sentences and characters that end an attribute."""


@dataclass(frozen=True)
class OfferedTool:
    """The offered tools, and the names of those left out.

    left_out: names of the tools per server that did not fit or could not be read.
    """

    tools: tuple[McpTool, ...]
    left_out: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class ToolListing:
    """The tools of one server. allows: returns True if the tool of that name may be used."""

    server: str
    tools: Sequence[JsonObject]
    allows: Callable[[str], bool]


def offered(listings: Iterable[ToolListing], clean: Clean) -> OfferedTool:
    """Return the tools that a model is offered, in the order of the servers.

    clean: removes invisible characters and secrets from a text.
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
    """Return the tool, or None if its name is unusual.

    A tool is called by its name, so an unusual name can't be changed.
    """
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
