"""Chooses the tools that a model is offered from those that servers list.

Names, descriptions and schemas come from the servers and are not trusted: their size is limited,
they are cleaned, and their order is fixed.

JSON schemas are reduced to what all providers of models accept. Every input gives the schema of an
object. What is left out was only advice for the model; the server validates the arguments itself.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from resolver.models.base import JsonObject
from resolver.models.run import McpTool

MAX_SCHEMA_CHARACTERS: Final = 6_000
"""Limit of one tool's schema, in characters.

A larger one loses its descriptions, then its nested parts.
"""

MAX_PROPERTY_DESCRIPTION: Final = 400
"""Limit of a property's description, in characters."""

MAX_PROPERTIES: Final = 64
MAX_ENUM_VALUES: Final = 50
"""Limit of the values of one `enum`."""

MAX_DEPTH: Final = 6
MAX_SCHEMA_PARTS: Final = 500
"""Limit of the parts of one schema. References may lead back into the schema repeatedly."""

_TYPES = {"string", "number", "integer", "boolean", "array", "object"}
_PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

Clean = Callable[[str], str]
"""Removes invisible characters and secrets from a text."""


def reduce_schema(schema: object, clean: Clean) -> JsonObject:
    """Return the reduced schema of a tool's arguments, always of an object.

    clean: applied to each description. Names of properties are kept unchanged or left out.
    """
    root = schema if isinstance(schema, dict) else {}
    for depth, max_description in ((MAX_DEPTH, MAX_PROPERTY_DESCRIPTION), (MAX_DEPTH, 0), (1, 0)):
        reduced = _Reducer(root, clean, max_description).reduce_root(depth)
        if len(json.dumps(reduced, ensure_ascii=False)) <= MAX_SCHEMA_CHARACTERS:
            return reduced
    return {"type": "object", "properties": {}}


class _Reducer:
    """One pass over a schema. max_description: limit in characters; 0 leaves them out."""

    def __init__(self, root: JsonObject, clean: Clean, max_description: int) -> None:
        self._root = root
        self._clean = clean
        self._max_description = max_description
        self._parts = 0

    def reduce_root(self, depth: int) -> JsonObject:
        return {"type": "object", **self._properties(self._resolve(self._root), depth)}

    def _reduce(self, schema: object, depth: int) -> JsonObject:
        self._parts += 1
        if not isinstance(schema, dict) or self._parts > MAX_SCHEMA_PARTS:
            return {"type": "string"}
        unresolved, schema = schema, self._resolve(schema)
        kind = self._type(schema)
        reduced: JsonObject = {"type": kind}
        if kind == "object" and depth > 0:
            reduced |= self._properties(schema, depth)
        elif kind == "array":
            reduced["items"] = self._reduce(schema.get("items") if depth > 0 else None, depth - 1)
        elif kind == "string":
            values = _as_list(schema.get("enum", [schema.get("const")]))
            texts = [value for value in values if isinstance(value, str) and value]
            if texts and len(values) <= MAX_ENUM_VALUES:
                reduced["enum"] = list(dict.fromkeys(texts))
        text = unresolved.get("description") or schema.get("description") or schema.get("title")
        if self._max_description and isinstance(text, str) and text.strip():
            description = truncate_with_ellipsis(self._clean(text), self._max_description)
            reduced["description"] = description
        return reduced

    def _properties(self, schema: JsonObject, depth: int) -> JsonObject:
        declared = schema.get("properties")
        declared = list(declared.items())[:MAX_PROPERTIES] if isinstance(declared, dict) else ()
        properties = {
            name: self._reduce(value, depth - 1)
            for name, value in declared
            if isinstance(name, str) and _PROPERTY_NAME.fullmatch(name)
        }
        names = (name for name in _as_list(schema.get("required")) if isinstance(name, str))
        required = [name for name in dict.fromkeys(names) if name in properties]
        return {"properties": properties, **({"required": required} if required else {})}

    def _type(self, schema: JsonObject) -> str:
        kinds = schema.get("type")
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            if isinstance(kind, str) and kind in _TYPES:
                return kind
        if isinstance(schema.get("properties"), dict):
            return "object"
        return "array" if "items" in schema else "string"

    def _resolve(self, schema: JsonObject) -> JsonObject:
        """Return the schema behind references and choices; of a choice, the first non-null one."""
        for _ in range(MAX_DEPTH):
            choices = [self._target(schema.get("$ref"))]
            for key in ("anyOf", "oneOf", "allOf"):
                choices += _as_list(schema.get(key))
            meaningful = (c for c in choices if isinstance(c, dict) and c.get("type") != "null")
            target = next(meaningful, None)
            if target is None or isinstance(schema.get("properties"), dict):
                return schema
            schema = target
        return schema

    def _target(self, reference: object) -> Any:
        """Return the target of a reference within the schema; other references are not followed."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        target: Any = self._root
        for step in reference[2:].split("/"):
            target = target.get(step) if isinstance(target, dict) else None
        return target


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


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
    schema = reduce_schema(listed.get("inputSchema"), clean)
    if clean(json.dumps(schema, ensure_ascii=False)) != json.dumps(schema, ensure_ascii=False):
        schema = {"type": "object", "properties": {}}
    return McpTool(
        server=server,
        name=name,
        description=truncate_with_ellipsis(clean(description), MAX_DESCRIPTION)
        if isinstance(description, str)
        else "",
        parameters=schema,
    )
