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
_ANY_VALUE: JsonObject = {"type": "string"}

Clean = Callable[[str], str]
"""Removes invisible characters and secrets from a text."""


def reduce_schema(schema: object, clean: Clean) -> JsonObject:
    """Return the reduced schema of a tool's arguments, always of an object.

    clean: applied to each description. Names of properties are kept unchanged or left out.
    """
    root = schema if isinstance(schema, dict) else {}
    for depth, max_description in (
        (MAX_DEPTH, MAX_PROPERTY_DESCRIPTION),
        (MAX_DEPTH, 0),
        (2, 0),
        (1, 0),
    ):
        reduced = _Reducer(root, clean, max_description).whole(root, depth)
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

    def whole(self, schema: JsonObject, depth: int) -> JsonObject:
        schema = self._resolve(schema)
        declared = schema.get("properties")
        properties: JsonObject = {}
        for name, value in list(declared.items() if isinstance(declared, dict) else ())[
            :MAX_PROPERTIES
        ]:
            if isinstance(name, str) and _PROPERTY_NAME.fullmatch(name):
                properties[name] = self.value(value, depth - 1)
        reduced: JsonObject = {"type": "object", "properties": properties}
        required = schema.get("required")
        if isinstance(required, list):
            known_required = [
                name for name in required if isinstance(name, str) and name in properties
            ]
            if known_required:
                reduced["required"] = list(dict.fromkeys(known_required))
        return reduced

    def value(self, schema: object, depth: int) -> JsonObject:
        self._parts += 1
        if not isinstance(schema, dict) or self._parts > MAX_SCHEMA_PARTS:
            return dict(_ANY_VALUE)
        unresolved, schema = schema, self._resolve(schema)
        match self._type(schema):
            case "object":
                reduced = self.whole(schema, depth) if depth > 0 else {"type": "object"}
            case "array":
                items = self.value(schema.get("items"), depth - 1) if depth > 0 else _ANY_VALUE
                reduced = {"type": "array", "items": dict(items)}
            case kind:
                reduced = {"type": kind}
                if kind == "string":
                    reduced |= self._enum(schema)
        return reduced | self._description(unresolved, schema)

    def _enum(self, schema: JsonObject) -> JsonObject:
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if not isinstance(values, list):
            return {}
        texts = [value for value in values if isinstance(value, str) and value]
        fits = (
            texts
            and len(values) <= MAX_ENUM_VALUES
            and self._clean("".join(texts)) == "".join(texts)
        )
        return {"enum": list(dict.fromkeys(texts))} if fits else {}

    def _description(self, *schemas: JsonObject) -> JsonObject:
        for schema in schemas:
            text = schema.get("description") or schema.get("title")
            if self._max_description and isinstance(text, str) and text.strip():
                return {
                    "description": truncate_with_ellipsis(self._clean(text), self._max_description)
                }
        return {}

    def _type(self, schema: JsonObject) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((k for k in kind if isinstance(k, str) and k in _TYPES), None)
        if isinstance(kind, str) and kind in _TYPES:
            return kind
        if isinstance(schema.get("properties"), dict):
            return "object"
        return "array" if "items" in schema else "string"

    def _resolve(self, schema: JsonObject) -> JsonObject:
        """Return the schema behind references and choices; of a choice, the first non-null one."""
        for _ in range(MAX_DEPTH):
            target = self._target(schema["$ref"]) if "$ref" in schema else None
            if target is None:
                target = next(
                    (
                        choice
                        for key in ("anyOf", "oneOf", "allOf")
                        for choice in _as_list(schema.get(key))
                        if isinstance(choice, dict) and choice.get("type") != "null"
                    ),
                    None,
                )
            if target is None or isinstance(schema.get("properties"), dict):
                return schema
            schema = target
        return schema

    def _target(self, reference: object) -> JsonObject | None:
        """Return the target of a reference within the schema; other references are not followed."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        target: Any = self._root
        for step in reference[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            target = target.get(step) if isinstance(target, dict) else None
        return target if isinstance(target, dict) else None


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
