"""Reading by the GraphQL API. Queries only: what they ask for may be asked for again."""

from collections.abc import Collection
from typing import Any

import github
import requests
from requests.adapters import HTTPAdapter

from resolver.forge.github.access import GitHubAccess


def _is_of_one_item(error: Any) -> bool:
    """Whether it is only about one item of a list, which the answer has as null: one that the token
    may not see, as an issue of another repository."""
    path = error.get("path") if isinstance(error, dict) else None
    return isinstance(path, list) and any(isinstance(step, int) for step in path)


def _is_of_missing(error: Any, may_lack: Collection[str]) -> bool:
    """Whether it only says that something does not exist which may not."""
    path = error.get("path") if isinstance(error, dict) else None
    named = isinstance(path, list) and bool(path) and path[-1] in may_lack
    return named and error.get("type") == "NOT_FOUND"


def ask(
    access: GitHubAccess,
    query: str,
    variables: dict[str, Any],
    may_lack: Collection[str] = (),
) -> dict[str, Any]:
    """The `data` of the answer; in its lists null for what the token may not see. Raises what
    `GitHubAccess.asking` turns into a ForgeError.

    may_lack: fields that are null where what they ask for does not exist.
    """
    retry = access.retry(harmless=True)
    with requests.Session() as session:
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry))
        answer = session.post(
            access.graphql_url,
            json={"query": query, "variables": variables},
            headers={"Authorization": f"Bearer {access.token}", "User-Agent": "resolver"},
            auth=lambda request: request,  # so that no ~/.netrc takes the header's place
            timeout=access.timeout,
            allow_redirects=False,
        )
        found = answer.json()
    if answer.status_code != 200:
        raise github.GithubException(answer.status_code, found, dict(answer.headers))
    # What is wrong with a query is told in an answer that says 200.
    errors = found.get("errors") or ()
    if not all(_is_of_one_item(error) or _is_of_missing(error, may_lack) for error in errors):
        told = "; ".join(str(error.get("message", "")) for error in found["errors"])
        raise github.GithubException(403, {"message": told}, dict(answer.headers))
    data: dict[str, Any] = found["data"]
    return data
