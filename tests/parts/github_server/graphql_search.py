"""The search of pull requests in the GraphQL API, with the qualifiers that Resolver uses."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.parts.github_server import access
from tests.parts.github_server.exchange import Call
from tests.parts.github_server.graphql_fields import (
    Fields,
    QueryError,
    argument,
    connection,
    issue_fields,
)
from tests.parts.github_server.graphql_merges import merge_fields
from tests.parts.github_server.graphql_related import related_fields
from tests.parts.github_server.state import Issue


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
    return connection([_shown(issue) for issue in found], arguments)


def _shown(issue: Issue) -> Fields:
    url = f"https://github.test/{issue.repository.full_name}/pull/{issue.number}"
    return {
        **issue_fields(issue),
        **related_fields(issue),
        **merge_fields(issue),
        "url": lambda _: url,
    }
