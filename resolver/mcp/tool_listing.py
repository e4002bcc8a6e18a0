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

from resolver.models.run import JsonObject, McpTool

MAX_SCHEMA: Final = 6_000
"""Limit of one tool's schema, in characters.

A larger one loses its descriptions, then its nested parts.
"""

MAX_TEXT: Final = 400
"""Limit of a property's description, in characters."""

MOST_PROPERTIES: Final = 64
MOST_WORDS: Final = 50
"""Limit of the values of one `enum`."""

DEEPEST: Final = 6
MOST_PARTS: Final = 500
"""Limit of the parts of one schema. References may lead back into the schema repeatedly."""

_TYPES = {"string", "number", "integer", "boolean", "array", "object"}
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_ANYTHING: JsonObject = {"type": "string"}

Clean = Callable[[str], str]
"""Removes invisible characters and secrets from a text."""


def reduce_schema(schema: object, clean: Clean) -> JsonObject:
    """Return the reduced schema of a tool's arguments, always of an object.

    clean: applied to each description. Names of properties are kept unchanged or left out.
    """
    root = schema if isinstance(schema, dict) else {}
    for depth, texts in ((DEEPEST, MAX_TEXT), (DEEPEST, 0), (2, 0), (1, 0)):
        found = _Reducer(root, clean, texts).whole(root, depth)
        if len(json.dumps(found, ensure_ascii=False)) <= MAX_SCHEMA:
            return found
    return {"type": "object", "properties": {}}


class _Reducer:
    """One pass over a schema. texts: limit of a description; 0 leaves descriptions out."""

    def __init__(self, root: JsonObject, clean: Clean, texts: int) -> None:
        self._root = root
        self._clean = clean
        self._texts = texts
        self._parts = 0

    def whole(self, schema: JsonObject, depth: int) -> JsonObject:
        schema = self._resolved(schema)
        given = schema.get("properties")
        properties: JsonObject = {}
        for name, value in list(given.items() if isinstance(given, dict) else ())[:MOST_PROPERTIES]:
            if isinstance(name, str) and _KEY.fullmatch(name):
                properties[name] = self.value(value, depth - 1)
        found: JsonObject = {"type": "object", "properties": properties}
        required = schema.get("required")
        if isinstance(required, list):
            known = [name for name in required if isinstance(name, str) and name in properties]
            if known:
                found["required"] = list(dict.fromkeys(known))
        return found

    def value(self, schema: object, depth: int) -> JsonObject:
        self._parts += 1
        if not isinstance(schema, dict) or self._parts > MOST_PARTS:
            return dict(_ANYTHING)
        outer, schema = schema, self._resolved(schema)
        match self._type(schema):
            case "object":
                found = self.whole(schema, depth) if depth > 0 else {"type": "object"}
            case "array":
                items = self.value(schema.get("items"), depth - 1) if depth > 0 else _ANYTHING
                found = {"type": "array", "items": dict(items)}
            case kind:
                found = {"type": kind}
                if kind == "string":
                    found |= self._words(schema)
        return found | self._description(outer, schema)

    def _words(self, schema: JsonObject) -> JsonObject:
        words = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if not isinstance(words, list):
            return {}
        kept = [word for word in words if isinstance(word, str) and word]
        fits = kept and len(words) <= MOST_WORDS and self._clean("".join(kept)) == "".join(kept)
        return {"enum": list(dict.fromkeys(kept))} if fits else {}

    def _description(self, *schemas: JsonObject) -> JsonObject:
        for schema in schemas:
            text = schema.get("description") or schema.get("title")
            if self._texts and isinstance(text, str) and text.strip():
                return {"description": shorten_schema(self._clean(text), self._texts)}
        return {}

    def _type(self, schema: JsonObject) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((k for k in kind if k in _TYPES), None)
        if isinstance(kind, str) and kind in _TYPES:
            return kind
        if isinstance(schema.get("properties"), dict):
            return "object"
        return "array" if "items" in schema else "string"

    def _resolved(self, schema: JsonObject) -> JsonObject:
        """Return the schema behind references and choices; of a choice, the first non-null one."""
        for _ in range(DEEPEST):
            target = self._target(schema["$ref"]) if "$ref" in schema else None
            if target is None:
                target = next(
                    (
                        choice
                        for key in ("anyOf", "oneOf", "allOf")
                        for choice in _listed(schema.get(key))
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
        found: Any = self._root
        for step in reference[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else None


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def shorten_schema(text: str, limit: int) -> str:
    """Return the text in at most `limit` characters; an ellipsis marks a truncated text."""
    text = text.strip()
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


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
