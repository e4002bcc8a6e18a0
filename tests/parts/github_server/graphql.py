"""The GraphQL fields that are served: viewer, and a repository's issues with their comments.

Queries are read for real (arguments, variables, aliases, fragments on a type); a field that
is not served is answered with GitHub's own kind of error.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.parts.github_server import access
from tests.parts.github_server import documents_core as core
from tests.parts.github_server.exchange import Answer, ApiError, Call
from tests.parts.github_server.graphql_fields import (
    Fields,
    QueryError,
    Resolved,
    actor,
    argument,
    comment_nodes,
    issue_fields,
    pull_nodes,
)
from tests.parts.github_server.graphql_merges import merge_fields
from tests.parts.github_server.graphql_mutations import mutations
from tests.parts.github_server.graphql_refs import ref_fields
from tests.parts.github_server.graphql_related import related_fields
from tests.parts.github_server.graphql_search import search_fields
from tests.parts.github_server.state import Repository

TOKEN = re.compile(r"\.\.\.|[!$():=@\[\]{}|]|\"(?:[^\"\\]|\\.)*\"|-?\d+|\w+")


@dataclass(frozen=True)
class Field:
    name: str
    alias: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    selection: tuple["Field", ...] = ()
    on: str = ""
    """The one type that it is asked of."""


class _Reader:
    """Reads one query. Variables are put in as they are met."""

    def __init__(self, text: str, variables: Mapping[str, Any]) -> None:
        self._tokens = TOKEN.findall(re.sub(r"#[^\n]*", "", text))
        self._variables = variables
        self.is_mutation = self._tokens[:1] == ["mutation"]

    def read(self) -> tuple[Field, ...]:
        while self._tokens and self._tokens[0] != "{":
            self._take()
        return self._selection()

    def _take(self, expected: str = "") -> str:
        if not self._tokens or (expected and self._tokens[0] != expected):
            raise QueryError(f"Parse error near {' '.join(self._tokens[:3])!r}")
        return str(self._tokens.pop(0))

    def _selection(self) -> tuple[Field, ...]:
        found: list[Field] = []
        self._take("{")
        while self._tokens and self._tokens[0] != "}":
            if self._tokens[0] == "...":
                self._take()
                self._take("on")
                on = self._take()
                found.extend(replace(field, on=field.on or on) for field in self._selection())
            else:
                found.append(self._field())
        self._take("}")
        return tuple(found)

    def _field(self) -> Field:
        alias = name = self._take()
        if self._tokens and self._tokens[0] == ":":
            self._take()
            name = self._take()
        arguments: dict[str, Any] = {}
        if self._tokens and self._tokens[0] == "(":
            self._take()
            while self._tokens and self._tokens[0] != ")":
                key = self._take()
                self._take(":")
                arguments[key] = self._value()
            self._take()
        nested = self._tokens and self._tokens[0] == "{"
        return Field(name, alias, arguments, self._selection() if nested else ())

    def _value(self) -> Any:
        token = self._take()
        if token == "$":
            return self._variables.get(self._take())
        if token.startswith('"'):
            return token[1:-1]
        if token == "{":
            fields = dict[str, Any]()
            while (key := self._take()) != "}":
                self._take(":")
                fields[key] = self._value()
            return fields
        return int(token) if re.fullmatch(r"-?\d+", token) else token


def _repository(repository: Repository) -> Fields:
    def numbered(arguments: Mapping[str, Any]) -> Fields | None:
        found = repository.issues.get(argument(arguments, "number", int))
        if found is None:
            return None
        merged = merge_fields(found) if found.pull else {}
        return {**issue_fields(found), **related_fields(found), **merged}

    return {
        "id": lambda _: core.node_id("Repository", repository.id),
        "databaseId": lambda _: repository.id,
        "nameWithOwner": lambda _: repository.full_name,
        "isPrivate": lambda _: repository.private,
        "issue": numbered,
        "pullRequest": numbered,
        "pullRequests": lambda arguments: pull_nodes(repository, arguments),
        "issueOrPullRequest": numbered,
    }


def _query(call: Call) -> Fields:
    def repository(arguments: Mapping[str, Any]) -> Fields | None:
        owner, name = (argument(arguments, key, str) for key in ("owner", "name"))
        full_name = f"{owner}/{name}"
        found = call.world.repositories.get(full_name.lower())
        if found is None or access.role(call.caller.token, found) == "none":
            return None
        return {**_repository(found), **ref_fields(found)}

    def nodes(arguments: Mapping[str, Any]) -> list[Fields | None]:
        seen = call.world.repositories.values()
        known = [comment_nodes(r) for r in seen if access.role(call.caller.token, r) != "none"]
        fields_by_id = {id: fields for nodes_by_id in known for id, fields in nodes_by_id.items()}
        return [fields_by_id.get(id) for id in arguments["ids"]]

    def node(arguments: Mapping[str, Any]) -> Fields | None:
        return nodes({"ids": [arguments["id"]]})[0]

    account = call.caller.account
    assert account is not None
    viewer = actor(account)
    return {
        "viewer": lambda _: viewer,
        "repository": repository,
        "nodes": nodes,
        "node": node,
        "search": lambda arguments: search_fields(call, arguments),
    }


def _answer(selection: tuple[Field, ...], fields: Fields) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for wanted in selection:
        if wanted.on and "__typename" in fields and fields["__typename"]({}) != wanted.on:
            continue
        if wanted.name not in fields:
            raise QueryError(f"Field '{wanted.name}' doesn't exist here")
        document[wanted.alias] = _shown(wanted, fields[wanted.name](wanted.arguments))
    return document


def _shown(wanted: Field, value: Resolved) -> Any:
    if isinstance(value, list):
        return [_shown(wanted, item) for item in value]
    return _answer(wanted.selection, value) if isinstance(value, dict) else value


def _missing(selection: tuple[Field, ...], data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return GitHub's error for repositories, issues and pull requests that do not exist."""
    numbered = ("issue", "pullRequest", "issueOrPullRequest")
    repositories = [
        {
            "type": "NOT_FOUND",
            "path": [wanted.alias],
            "message": "Could not resolve to a Repository with the name "
            f"'{wanted.arguments['owner']}/{wanted.arguments['name']}'.",
        }
        for wanted in selection
        if wanted.name == "repository" and data[wanted.alias] is None
    ]
    nodes = [
        {
            "type": "NOT_FOUND",
            "path": [wanted.alias],
            "message": "Could not resolve to a node with the global id of "
            f"'{wanted.arguments['id']}'.",
        }
        for wanted in selection
        if wanted.name == "node" and data[wanted.alias] is None
    ]
    return (
        repositories
        + nodes
        + [
            {
                "type": "NOT_FOUND",
                "path": [outer.alias, wanted.alias],
                "message": f"Could not resolve to {wanted.name} {wanted.arguments.get('number')}.",
            }
            for outer in selection
            if data[outer.alias] is not None
            for wanted in outer.selection
            if wanted.name in numbered and data[outer.alias][wanted.alias] is None
        ]
    )


def graphql(call: Call) -> Answer:
    """POST /graphql. Errors in a query are answered with status 200, as on GitHub."""
    if call.caller.account is None:
        raise ApiError(401, "This endpoint requires you to be authenticated.")
    sent = call.body()
    try:
        reader = _Reader(str(sent.get("query", "")), sent.get("variables") or {})
        served = mutations(call) if reader.is_mutation else _query(call)
        selection = reader.read()
        data = _answer(selection, served)
        missing = _missing(selection, data)
        return Answer(200, {"data": data, **({"errors": missing} if missing else {})})
    except QueryError as error:
        return Answer(200, {"errors": [{"message": str(error)}]})
