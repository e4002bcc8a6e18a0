"""What the GraphQL API changes: a review thread is resolved."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.parts.github_server import access
from tests.parts.github_server import documents_core as core
from tests.parts.github_server.exchange import Call
from tests.parts.github_server.graphql_fields import Fields, QueryError, thread_fields
from tests.parts.github_server.state import Issue, Repository, ReviewComment


def mutations(call: Call) -> Fields:
    """The fields of `mutation`."""

    def resolve(arguments: Mapping[str, Any]) -> Fields:
        given = arguments.get("input")
        id = given.get("threadId") if isinstance(given, dict) else None
        found = (
            (issue, root)
            for issue, root in _threads(call)
            if core.node_id("PullRequestReviewThread", root.id) == id
        )
        issue, root = next(found, (None, None))
        if issue is None or root is None:
            raise QueryError(f"Could not resolve to a node with the global id of '{id}'")
        if not _may_resolve(call, issue.repository):
            raise QueryError("Resource not accessible by integration")
        root.resolved, root.resolved_by = True, call.caller.account
        shown = thread_fields(issue, root)
        return {"thread": lambda _: shown}

    return {
        "resolveReviewThread": resolve,
    }


def _threads(call: Call) -> Iterator[tuple[Issue, ReviewComment]]:
    for repository in call.world.repositories.values():
        if access.role(call.caller.token, repository) != "none":
            for issue in repository.issues.values():
                yield from ((issue, comment) for comment in issue.review_comments)


def _may_resolve(call: Call, repository: Repository) -> bool:
    """As GitHub has it: who may write, and of an App or Action only with both permissions."""
    token = call.caller.token
    permissions = ("pull_requests", "contents")
    may = token is not None and all(
        access.has_permission(token, permission, "write") for permission in permissions
    )
    return may and access.role(token, repository) in {"write", "maintain", "admin"}
