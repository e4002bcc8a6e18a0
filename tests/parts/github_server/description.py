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


_COMBINED = frozenset({"oneOf", "anyOf", "allOf"})


def _allow_null(node: Json) -> Json:
    """Return the node; if it is a schema with `nullable`, say so in the words of JSON Schema."""
    if node.get("nullable") is not True or "$ref" in node:
        return node
    if not _COMBINED.isdisjoint(node):
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


class Validators:
    """Validators for the schemas of a document in the form of JSON."""

    _URI = "https://description.test/"

    def __init__(self, text: bytes) -> None:
        document = json.loads(text, object_hook=_allow_null)
        for operations in document["paths"].values():
            for operation in operations.values():
                _without_requirements(operation.get("responses", {}))
        _without_requirements([document["components"], document["x-webhooks"]])
        self._registry = jsonschema_rs.Registry([(self._URI, document)], draft=jsonschema_rs.Draft4)
        self._validators: dict[tuple[str, ...], jsonschema_rs.Draft4Validator] = {}

    def at(self, steps: tuple[str, ...]) -> jsonschema_rs.Draft4Validator:
        """Return the validator of the schema at `steps`."""
        if steps not in self._validators:
            pointer = "/".join(quote(s.replace("~", "~0").replace("/", "~1"), "~") for s in steps)
            self._validators[steps] = jsonschema_rs.Draft4Validator(
                {"$ref": f"{self._URI}#/{pointer}"},
                validate_formats=True,
                registry=self._registry,
            )
        return self._validators[steps]


def _steps(reference: str) -> tuple[str, ...]:
    """The steps from the document's root to what `#/a/b` refers to."""
    steps = reference.removeprefix("#/").split("/")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


class Description:
    """GitHub's description, loaded once a session (0.5 s, 150 MB)."""

    def __init__(self, text: bytes) -> None:
        self._document = document = json.loads(text)
        self._validators = Validators(text)
        self._operations: dict[tuple[str, str], tuple[str, Json, dict[str, str]] | None] = {}
        # Literal paths before those with parameters: `/user/issues` before `/user/{x}`.
        self._paths = [
            (path, template_pattern(path))
            for path in sorted(document["paths"], key=lambda path: (path.count("{"), -len(path)))
        ]

    def problems(self, exchange: Exchange) -> list[str]:
        """Return the violations of the description by a REST request and its answer, in words."""
        found = self._operation(exchange)
        where = f"{exchange.method} {exchange.path}"
        if found is None:
            return [f"{where}: GitHub has no such endpoint"]
        template, operation, values = found
        steps = ("paths", template, exchange.method.lower())
        problems = [
            *(["the test server broke over it"] if exchange.crashed else ()),
            *self._parameter_problems(exchange, steps, operation, values),
            *self._body_problems(exchange, steps, operation),
            *self._answer_problems(exchange, steps, operation),
        ]
        return [f"{where}: {problem}" for problem in problems]

    def payload_problems(self, event: str, payload: Json) -> list[str]:
        """Return the violations of the description by a webhook payload."""
        name = event.replace("_", "-")
        if "action" in payload:
            name += "-" + payload["action"].replace("_", "-")
        if name not in self._document["x-webhooks"]:
            return [f"GitHub sends no {name}"]
        steps = ("x-webhooks", name, "post", "requestBody", "content", "application/json")
        return list(self._schema_problems(payload, (*steps, "schema"), f"payload {name}"))

    def _operation(self, exchange: Exchange) -> tuple[str, Json, dict[str, str]] | None:
        request = exchange.method, exchange.path
        if request not in self._operations:
            self._operations[request] = self._search(exchange)
        return self._operations[request]

    def _search(self, exchange: Exchange) -> tuple[str, Json, dict[str, str]] | None:
        for template, pattern in self._paths:
            operations = self._document["paths"][template]
            match = pattern.fullmatch(exchange.path)
            if match and exchange.method.lower() in operations:
                operation: Json = operations[exchange.method.lower()]
                return template, operation, match.groupdict()
        return None

    def _at(self, steps: tuple[str, ...]) -> Any:
        node: Any = self._document
        for step in steps:
            node = node[int(step)] if isinstance(node, list) else node[step]
        return node

    def _followed(self, steps: tuple[str, ...]) -> tuple[str, ...]:
        """Return the target of the reference at `steps`, or `steps` if there is no reference."""
        reference = self._at(steps).get("$ref")
        return _steps(reference) if reference else steps

    def _schema_problems(self, instance: Any, steps: tuple[str, ...], what: str) -> Iterator[str]:
        for error in self._validators.at(steps).iter_errors(instance):
            path = "/".join(str(step) for step in error.instance_path)
            yield f"{what} at {path or 'its top'}: {error.message[:300]}"

    def _parameter_problems(
        self, exchange: Exchange, steps: tuple[str, ...], operation: Json, values: dict[str, str]
    ) -> Iterator[str]:
        known = set()
        for index in range(len(operation.get("parameters", ()))):
            at = self._followed((*steps, "parameters", str(index)))
            parameter = self._at(at)
            name, place = parameter["name"], parameter["in"]
            sent = {"path": values, "query": exchange.query}.get(place, {})
            if place == "query":
                known.add(name)
            if name in sent:
                value = self._coerced(sent[name], self._at(self._followed((*at, "schema"))))
                yield from self._schema_problems(value, (*at, "schema"), f"{place} {name}")
            elif parameter.get("required") and place == "query":
                yield f"query {name} is required"
        for name in sorted(set(exchange.query) - known):
            yield f"query {name} is not a parameter"

    @staticmethod
    def _coerced(value: str, schema: Json) -> Any:
        kinds = [schema.get("type"), *(option.get("type") for option in schema.get("oneOf", ()))]
        if "integer" in kinds and re.fullmatch(r"-?\d+", value):
            return int(value)
        if "boolean" in kinds and value in ("true", "false"):
            return value == "true"
        return value

    def _body_problems(
        self, exchange: Exchange, steps: tuple[str, ...], operation: Json
    ) -> Iterator[str]:
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
        if operation["operationId"] == "issues/add-labels" and isinstance(sent, list):
            # The description allows the bare list too, in words only.
            sent = {"labels": sent}
        at = (*steps, "requestBody", "content", "application/json", "schema")
        yield from self._schema_problems(sent, at, "request body")
        yield from self._unknown_names(sent, at, "request body")

    def _unknown_names(self, instance: Any, steps: tuple[str, ...], what: str) -> Iterator[str]:
        """Yield the properties of an object, or of a list's objects, that GitHub does not have."""
        known = self._property_names(steps)
        for row in instance if isinstance(instance, list) else [instance]:
            for name in sorted(set(row) - known) if known and isinstance(row, dict) else ():
                yield f"{what} has {name}, which GitHub does not know"

    def _property_names(self, steps: tuple[str, ...]) -> set[str]:
        """Names that an object of this schema, or of its items, may have; empty when any will
        do."""
        at = self._followed(steps)
        schema = self._at(at)
        if "items" in schema:
            return self._property_names((*at, "items"))
        names = set(schema.get("properties", ()))
        for keyword in ("oneOf", "anyOf", "allOf"):
            for index in range(len(schema.get(keyword, ()))):
                names |= self._property_names((*at, keyword, str(index)))
        return names

    def _answer_problems(
        self, exchange: Exchange, steps: tuple[str, ...], operation: Json
    ) -> Iterator[str]:
        answer = exchange.answer
        if answer is None or exchange.fault:
            return
        status = str(answer.status)
        if answer.status == 304 and "if-none-match" in exchange.headers:
            return  # any GET may be asked on a condition
        if status not in operation["responses"]:
            if answer.status < 400:
                yield f"answer {status} is not described"
            else:
                error = ("components", "schemas", "basic-error")
                yield from self._schema_problems(answer.document, error, f"answer {status}")
            return
        at: tuple[str, ...] = self._followed((*steps, "responses", status))
        content = self._at(at).get("content", {})
        if "application/json" in content:
            at = (*at, "content", "application/json", "schema")
            yield from self._schema_problems(answer.document, at, f"answer {status}")
            if answer.status < 400:
                yield from self._unknown_names(answer.document, at, f"answer {status}")
        elif not content and answer.document is not None:
            if answer.status < 400:
                yield f"answer {status} has a body where none is described"
                return
            # a few refusals are described without the words that GitHub gives along
            error = ("components", "schemas", "basic-error")
            yield from self._schema_problems(answer.document, error, f"answer {status}")


@cache
def load(path: Path) -> Description:
    """The description in that file."""
    return Description(path.read_bytes())
