"""Chooses the tools that a model is offered from those that servers list.

Names, descriptions and schemas come from the servers and are not trusted: their size is limited,
they are cleaned, and their order is fixed.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from resolver.models.base import JsonObject
from resolver.models.run import McpTool

MAX_SCHEMA_CHARACTERS: Final = 6_000
"""Limit of one tool's schema, in characters. A larger one is left out: the server checks the
arguments itself, and its errors say what it expects."""

_NO_SCHEMA: Final[JsonObject] = {"type": "object", "properties": {}}
_PROPERTY_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of properties that every provider of models accepts."""

Clean = Callable[[str], str]
"""Removes invisible characters and secrets from a text."""


def clean_schema(declared: object, clean: Clean) -> JsonObject:
    """Return the schema of a tool's arguments, always of an object with named properties.

    Providers of models refuse a request in which the schema of a tool is anything else.
    """
    schema = declared if isinstance(declared, dict) else {}
    found, required = schema.get("properties"), schema.get("required")
    properties = {
        name: value
        for name, value in (found.items() if isinstance(found, dict) else ())
        if isinstance(value, dict) and _PROPERTY_NAME.fullmatch(name)
    }
    kept: JsonObject = {"type": "object", "properties": properties}
    if isinstance(required, list):
        kept["required"] = [name for name in properties if name in required]
    kept |= {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    text = clean(json.dumps(kept, ensure_ascii=False))
    try:
        return dict(json.loads(text)) if len(text) <= MAX_SCHEMA_CHARACTERS else _NO_SCHEMA
    except ValueError:  # a secret was removed together with a quote
        return _NO_SCHEMA


def truncate_with_ellipsis(text: str, limit: int) -> str:
    """Return the text in at most `limit` characters; an ellipsis marks a truncated text."""
    text = text.strip()
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


MAX_TOOLS: Final = 40
"""Limit of the number of tools, over all servers."""

MAX_TOTAL_CHARACTERS: Final = 40_000
"""Limit of the names, descriptions and schemas of all tools in characters: about 10,000 tokens."""

MAX_DESCRIPTION: Final = 1_000
MAX_NAME: Final = 128

_TOOL_NAME: Final = re.compile(rf"[\w./:@-]{{1,{MAX_NAME}}}")
"""Pattern of a tool's name. It excludes sentences and characters that end an attribute."""


@dataclass(frozen=True)
class ToolChoice:
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


def choose_tools(listings: Iterable[ToolListing], clean: Clean) -> ToolChoice:
    """Return the tools that a model is offered, in the order of the servers.

    clean: removes invisible characters and secrets from a text.
    """
    tools: list[McpTool] = []
    left_out: dict[str, tuple[str, ...]] = {}
    characters_left = MAX_TOTAL_CHARACTERS
    for listing in listings:
        omitted: list[str] = []
        names: set[str] = set()
        for listed in listing.tools:
            name = listed.get("name")
            if not isinstance(name, str) or not listing.allows(name) or name in names:
                continue
            names.add(name)
            tool = _tool(listing.server, name, listed, clean)
            size = len(tool.model_dump_json()) if tool else 0
            if tool is None or len(tools) == MAX_TOOLS or size > characters_left:
                omitted.append(truncate_with_ellipsis(clean(name), MAX_NAME))
                continue
            characters_left -= size
            tools.append(tool)
        if omitted:
            left_out[listing.server] = tuple(omitted)
    return ToolChoice(tuple(tools), left_out)


def _tool(server: str, name: str, listed: JsonObject, clean: Clean) -> McpTool | None:
    """Return the tool, or None if its name is unusual.

    A tool is called by its name, so an unusual name can't be changed.
    """
    if not _TOOL_NAME.fullmatch(name) or clean(name) != name:
        return None
    description = listed.get("description") or listed.get("title")
    return McpTool(
        server=server,
        name=name,
        description=truncate_with_ellipsis(clean(description), MAX_DESCRIPTION)
        if isinstance(description, str)
        else "",
        parameters=clean_schema(listed.get("inputSchema"), clean),
    )
