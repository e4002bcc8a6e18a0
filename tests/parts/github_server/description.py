"""Validation against GitHub's own OpenAPI description: requests, answers, webhook payloads.

OpenAPI 3.0 writes "may be null" as `nullable: true`, which JSON Schema does not know: the schemas
are changed to say it in the words of JSON Schema.

Requests have to be complete. Answers and payloads have the fields that clients read: each has to be
one of GitHub's and of its type, but none is required.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema_rs

from tests.parts.github_server.exchange import Exchange, template_pattern

Json = dict[str, Any]
Steps = tuple[str, ...]
"""The way from the document's root to a part of it."""

COMBINED = ("oneOf", "anyOf", "allOf")
JSON_SCHEMA = ("content", "application/json", "schema")
ERROR = ("components", "schemas", "basic-error")
URI = "https://description.test/"


def _allow_null(node: Json) -> Json:
    """Return the node; if it is a schema with `nullable`, say so in the words of JSON Schema."""
    if node.get("nullable") is not True or "$ref" in node:
        return node
    if any(word in node for word in COMBINED):
        return {"anyOf": [{"type": "null"}, node]}
    changed = dict(node)
    if isinstance(node.get("type"), str):
        changed["type"] = [node["type"], "null"]
    if "enum" in node:
        changed["enum"] = [*node["enum"], None]
    return changed


def _without_requirements(node: Any) -> None:
    """Let all properties of the schemas be left out, so that several of `oneOf` may fit."""
    if isinstance(node, dict):
        if isinstance(node.get("required"), list):
            del node["required"]
        if "oneOf" in node:
            node["anyOf"] = node.pop("oneOf")
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list):
            _without_requirements(child)


class Description:
    """GitHub's description, loaded once a session (0.4 s, 100 MB)."""

    def __init__(self, text: bytes) -> None:
        self._document = document = json.loads(text, object_hook=_allow_null)
        for operations in document["paths"].values():
            for operation in operations.values():
                _without_requirements(operation.get("responses", {}))
        _without_requirements([document["components"], document["x-webhooks"]])
        self._registry = jsonschema_rs.Registry([(URI, document)], draft=jsonschema_rs.Draft4)
        # Literal paths before those with parameters: `/user/issues` before `/user/{x}`.
        self._paths = [
            (path, template_pattern(path))
            for path in sorted(document["paths"], key=lambda path: (path.count("{"), -len(path)))
        ]
        self._search = cache(self._search_uncached)
        self._validator = cache(self._make_validator)

    def problems(self, exchange: Exchange) -> list[str]:
        """Return the violations of the description by a REST request and its answer, in words."""
        where = f"{exchange.method} {exchange.path}"
        found = self._search(exchange.method.lower(), exchange.path)
        if found is None:
            return [f"{where}: GitHub has no such endpoint"]
        steps, values = found
        problems = [
            *(["the test server broke over it"] if exchange.crashed else ()),
            *self._parameter_problems(exchange, steps, values),
            *self._body_problems(exchange, steps),
            *self._answer_problems(exchange, steps),
        ]
        return [f"{where}: {problem}" for problem in problems]

    def payload_problems(self, event: str, payload: Json) -> list[str]:
        """Return the violations of the description by a webhook payload."""
        name = "-".join([event, *([payload["action"]] if "action" in payload else ())])
        name = name.replace("_", "-")
        if name not in self._document["x-webhooks"]:
            return [f"GitHub sends no {name}"]
        steps = ("x-webhooks", name, "post", "requestBody", *JSON_SCHEMA)
        return list(self._schema_problems(payload, steps, f"payload {name}"))

    def _search_uncached(self, method: str, path: str) -> tuple[Steps, dict[str, str]] | None:
        """The operation of a request, and the values of its path."""
        for template, pattern in self._paths:
            match = pattern.fullmatch(path)
            if match and method in self._document["paths"][template]:
                return ("paths", template, method), match.groupdict()
        return None

    def _at(self, steps: Steps) -> Any:
        node: Any = self._document
        for step in steps:
            node = node[int(step)] if isinstance(node, list) else node[step]
        return node

    def _followed(self, steps: Steps) -> Steps:
        """Return the target of the reference at `steps`, or `steps` if there is no reference."""
        reference = self._at(steps).get("$ref")
        return tuple(reference.removeprefix("#/").split("/")) if reference else steps

    def _make_validator(self, steps: Steps) -> jsonschema_rs.Draft4Validator:
        pointer = "/".join(quote(s.replace("~", "~0").replace("/", "~1"), "~") for s in steps)
        schema = {"$ref": f"{URI}#/{pointer}"}
        registry = self._registry
        return jsonschema_rs.Draft4Validator(schema, validate_formats=True, registry=registry)

    def _schema_problems(self, instance: Any, steps: Steps, what: str) -> Iterator[str]:
        for error in self._validator(steps).iter_errors(instance):
            path = "/".join(str(step) for step in error.instance_path)
            yield f"{what} at {path or 'its top'}: {error.message[:300]}"

    def _whole_problems(self, instance: Any, steps: Steps, what: str) -> Iterator[str]:
        """Those, and the properties of an object, or of a list's, that GitHub does not have."""
        yield from self._schema_problems(instance, steps, what)
        known = self._property_names(steps)
        for row in instance if isinstance(instance, list) else [instance]:
            for name in sorted(set(row) - known) if known and isinstance(row, dict) else ():
                yield f"{what} has {name}, which GitHub does not know"

    def _property_names(self, steps: Steps) -> set[str]:
        """Names that an object of this schema, or of its items, may have; empty: any will do."""
        steps = self._followed(steps)
        schema = self._at(steps)
        if "items" in schema:
            return self._property_names((*steps, "items"))
        names = set(schema.get("properties", ()))
        for word in COMBINED:
            for index in range(len(schema.get(word, ()))):
                names |= self._property_names((*steps, word, str(index)))
        return names

    def _parameter_problems(
        self, exchange: Exchange, steps: Steps, values: dict[str, str]
    ) -> Iterator[str]:
        known = set()
        for index in range(len(self._at(steps).get("parameters", ()))):
            at = self._followed((*steps, "parameters", str(index)))
            parameter = self._at(at)
            name, place = parameter["name"], parameter["in"]
            sent = {"path": values, "query": exchange.query}.get(place, {})
            if place == "query":
                known.add(name)
            if name in sent:
                value = _coerced(sent[name], self._at(self._followed((*at, "schema"))))
                yield from self._schema_problems(value, (*at, "schema"), f"{place} {name}")
            elif parameter.get("required") and place == "query":
                yield f"query {name} is required"
        for name in sorted(set(exchange.query) - known):
            yield f"query {name} is not a parameter"

    def _body_problems(self, exchange: Exchange, steps: Steps) -> Iterator[str]:
        operation = self._at(steps)
        described = operation.get("requestBody")
        if not exchange.body:
            if described and described.get("required"):
                yield "a body is required"
            return
        try:
            sent = exchange.json
        except ValueError:
            yield "the body is not JSON"
            return
        if described is None:
            if sent not in (None, {}):
                yield "a body was sent where none is described"
            return
        yield from self._whole_problems(sent, (*steps, "requestBody", *JSON_SCHEMA), "request body")

    def _answer_problems(self, exchange: Exchange, steps: Steps) -> Iterator[str]:
        answer = exchange.answer
        if answer is None or exchange.fault:
            return
        if answer.status == 304 and "if-none-match" in exchange.headers:
            return  # any GET may be asked on a condition
        what, is_error = f"answer {answer.status}", answer.status >= 400
        at = (*steps, "responses", str(answer.status))
        if str(answer.status) in self._at(steps)["responses"]:
            at = self._followed(at)
            if "application/json" in self._at(at).get("content", {}):
                check = self._schema_problems if is_error else self._whole_problems
                yield from check(answer.document, (*at, *JSON_SCHEMA), what)
                return
        elif not is_error:
            yield f"{what} is not described"
        if is_error:
            # Refusals that are not described, or without the words that GitHub gives along.
            if answer.document is not None:
                yield from self._schema_problems(answer.document, ERROR, what)
        elif answer.document is not None:
            yield f"{what} has a body where none is described"


def _coerced(value: str, schema: Json) -> Any:
    options = (schema, *schema.get("anyOf", ()), *schema.get("oneOf", ()))
    kinds = str([option.get("type") for option in options])
    if "integer" in kinds and re.fullmatch(r"-?\d+", value):
        return int(value)
    if "boolean" in kinds and value in ("true", "false"):
        return value == "true"
    return value


@cache
def load(path: Path) -> Description:
    """The description in that file."""
    return Description(path.read_bytes())
