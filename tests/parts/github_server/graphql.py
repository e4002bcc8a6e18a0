"""The GraphQL fields that are served: viewer, and a repository's issues with their comments.

A field that is not served is answered with GitHub's own kind of error.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from graphql import (
    FieldNode,
    GraphQLError,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    Undefined,
    parse,
    value_from_ast_untyped,
)

from tests.parts.github_server import access
from tests.parts.github_server import documents_core as core
from tests.parts.github_server.exchange import Answer, ApiError, Call
from tests.parts.github_server.graphql_fields import (
    Fields,
    QueryError,
    actor,
    argument,
    connection,
    issue_fields,
    repository_fields,
    text_nodes,
    thread_fields,
)
from tests.parts.github_server.state import Issue, Repository

MAY_BE_MISSING = ("repository", "node", "issue", "pullRequest", "issueOrPullRequest")


@dataclass(frozen=True)
class Field:
    name: str
    alias: str
    arguments: Mapping[str, Any]
    selection: tuple["Field", ...] = ()
    on: str = ""
    """The one type that it is asked of."""


def _fields(
    selected: SelectionSetNode | None, variables: dict[str, Any], on: str = ""
) -> Iterator[Field]:
    for node in selected.selections if selected else ():
        if isinstance(node, InlineFragmentNode) and node.type_condition:
            yield from _fields(node.selection_set, variables, node.type_condition.name.value)
        elif isinstance(node, FieldNode):
            arguments = {
                argument.name.value: value
                for argument in node.arguments or ()
                if (value := value_from_ast_untyped(argument.value, variables)) is not Undefined
            }
            nested = tuple(_fields(node.selection_set, variables))
            yield Field(node.name.value, (node.alias or node.name).value, arguments, nested, on)


def _query(call: Call) -> Fields:
    def sees(repository: Repository) -> bool:
        return access.role(call.caller.token, repository) != "none"

    def repository(arguments: Mapping[str, Any]) -> Fields | None:
        owner, name = (argument(arguments, key, str) for key in ("owner", "name"))
        known = {**call.world.moved, **call.world.repositories}
        found = known.get(f"{owner}/{name}".lower())
        return repository_fields(call.site, found) if found and sees(found) else None

    def nodes(arguments: Mapping[str, Any]) -> list[Fields | None]:
        known = dict[str, Fields]()
        for found in filter(sees, call.world.repositories.values()):
            known |= text_nodes(call.site, found)
        return [known.get(id) for id in arguments["ids"]]

    account = call.caller.account
    assert account is not None
    return {
        "viewer": actor(account),
        "repository": repository,
        "nodes": nodes,
        "node": lambda arguments: nodes({"ids": [arguments["id"]]})[0],
        "search": lambda arguments: search_fields(call, arguments),
    }


def _answer(selection: tuple[Field, ...], fields: Fields) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for wanted in selection:
        if wanted.on and fields.get("__typename", wanted.on) != wanted.on:
            continue
        if wanted.name not in fields:
            raise QueryError(f"Field '{wanted.name}' doesn't exist here")
        value = fields[wanted.name]
        value = value(wanted.arguments) if callable(value) else value
        document[wanted.alias] = _shown(wanted, value)
    return document


def _shown(wanted: Field, value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(wanted, item) for item in value]
    return _answer(wanted.selection, value) if isinstance(value, dict) else value


def _missing(data: dict[str, Any], selection: tuple[Field, ...], *path: str) -> Iterator[Any]:
    """Yield GitHub's error for each repository, issue, pull request or node that isn't there."""
    for wanted in selection:
        found, here = data[wanted.alias], (*path, wanted.alias)
        if found is None and wanted.name in MAY_BE_MISSING and len(path) < 2:
            words = " ".join(map(str, wanted.arguments.values()))
            message = f"Could not resolve to {wanted.name} {words}."
            yield {"type": "NOT_FOUND", "path": list(here), "message": message}
        elif isinstance(found, dict) and not path:
            yield from _missing(found, wanted.selection, *here)


def graphql(call: Call) -> Answer:
    """POST /graphql. Errors in a query are answered with status 200, as on GitHub."""
    if call.caller.account is None:
        raise ApiError(401, "This endpoint requires you to be authenticated.")
    sent = call.body()
    try:
        operation = parse(str(sent.get("query", ""))).definitions[0]
        assert isinstance(operation, OperationDefinitionNode)
        is_mutation = operation.operation is OperationType.MUTATION
        selection = tuple(_fields(operation.selection_set, sent.get("variables") or {}))
        data = _answer(selection, mutations(call) if is_mutation else _query(call))
        missing = list(_missing(data, selection))
        return Answer(200, {"data": data, **({"errors": missing} if missing else {})})
    except (GraphQLError, QueryError) as error:
        return Answer(200, {"errors": [{"message": str(error)}]})


def mutations(call: Call) -> Fields:
    """The fields of `mutation`."""

    def resolve(arguments: Mapping[str, Any]) -> Fields:
        id = argument(arguments, "input", dict).get("threadId")
        for repository in call.world.repositories.values():
            for root in repository.review_comments():
                if core.node_id("PullRequestReviewThread", root.id) == id:
                    if not _may_resolve(call, repository):
                        raise QueryError("Resource not accessible by integration")
                    root.resolved = True
                    issue = repository.issues[root.number]
                    return {"thread": thread_fields(call.site, issue, root)}
        raise QueryError(f"Could not resolve to a node with the global id of '{id}'")

    return {"resolveReviewThread": resolve}


def _may_resolve(call: Call, repository: Repository) -> bool:
    """As GitHub has it: who may write, and of an App or Action only with both permissions."""
    token = call.caller.token
    permissions = ("pull_requests", "contents")
    may = token is not None and all(
        access.has_permission(token, permission, "write") for permission in permissions
    )
    return may and access.role(token, repository) in {"write", "maintain", "admin"}


def search_fields(call: Call, arguments: Mapping[str, Any]) -> Fields:
    """Return the pull requests that a search finds, the newest first."""
    words = dict(word.split(":", 1) for word in argument(arguments, "query", str).split())
    if words.pop("is") != "pr" or set(words) - {"repo", "author", "head", "created"}:
        raise QueryError("this search is not served")
    repository = call.world.repositories.get(words["repo"].lower())
    if repository is None or access.role(call.caller.token, repository) == "none":
        return connection([], arguments)
    author = words["author"]
    login = f"{author.removeprefix('app/')}[bot]" if author.startswith("app/") else author
    since = datetime.fromisoformat(words["created"].removeprefix(">=")).replace(tzinfo=UTC)

    def is_found(issue: Issue) -> bool:
        return (
            issue.pull is not None
            and issue.author.login.lower() == login.lower()
            and issue.pull.head.startswith(words["head"])
            and issue.created_at >= since
        )

    found = sorted(filter(is_found, repository.issues.values()), key=lambda i: -i.number)
    return connection([issue_fields(call.site, issue) for issue in found], arguments)
