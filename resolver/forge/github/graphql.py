"""Reading by the GraphQL API. Queries only: what they ask for may be asked for again."""

from typing import Any

import github
import requests
from requests.adapters import HTTPAdapter

from resolver.forge.github.access import RATE_LIMITED, TROUBLE, BoundedRetry, GitHubAccess


class _QueryRetry(BoundedRetry):
    """A query changes nothing, so it is sent again whatever has become of it."""

    def is_retry(
        self,
        method: str,  # noqa: ARG002 - urllib3's signature
        status_code: int,
        has_retry_after: bool = False,  # noqa: ARG002
    ) -> bool:
        return bool(self.total) and status_code in RATE_LIMITED | TROUBLE


def _is_of_one_item(error: Any) -> bool:
    """Whether it is only about one item of a list, which the answer has as null: one that the token
    may not see, as an issue of another repository."""
    path = error.get("path") if isinstance(error, dict) else None
    return isinstance(path, list) and any(isinstance(step, int) for step in path)


def ask(access: GitHubAccess, query: str, variables: dict[str, Any]) -> dict[str, Any]:
    """The `data` of the answer; in its lists null for what the token may not see. Raises what
    `GitHubAccess.asking` turns into a ForgeError."""
    retry = _QueryRetry(
        total=access.attempts,
        backoff_factor=access.backoff,
        secondary_rate_wait=min(60.0, access.longest_wait),
        max_rate_limit_wait=access.longest_wait,
        raise_on_status=False,
        allowed_methods=None,
    )
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
    if not all(_is_of_one_item(error) for error in found.get("errors") or ()):
        told = "; ".join(str(error.get("message", "")) for error in found["errors"])
        raise github.GithubException(403, {"message": told}, dict(answer.headers))
    data: dict[str, Any] = found["data"]
    return data
