"""Reading by the GraphQL API. Queries only: what they ask for may be asked for again."""

import logging
import time
from collections.abc import Collection
from typing import Any

import github
import requests
from requests.adapters import HTTPAdapter

from resolver.github.client.access import WORTH_TELLING, GitHubAccess

LIMITED = "RATE_LIMITED"
"""The type of the error that tells of a limit, in an answer that says 200.

Source: https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
"""

logger = logging.getLogger("resolver.github")


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


def query_graphql(
    access: GitHubAccess,
    query: str,
    variables: dict[str, Any],
    may_lack: Collection[str] = (),
) -> dict[str, Any]:
    """The `data` of the answer; in its lists null for what the token may not see. Raises what
    `GitHubAccess.asking` turns into a ForgeError.

    may_lack: fields that are null where what they ask for does not exist. A rate limit is waited
    for as the REST API's is, no longer than the access allows.
    """
    for attempt in range(access.attempts + 1):
        answer = _asked(access, query, variables)
        found = answer.json()
        if answer.status_code != 200:
            raise github.GithubException(answer.status_code, found, dict(answer.headers))
        # What is wrong with a query is told in an answer that says 200.
        errors = found.get("errors") or ()
        if not any(isinstance(error, dict) and error.get("type") == LIMITED for error in errors):
            break
        wait = _wait(answer, access.backoff * 2**attempt)
        if attempt == access.attempts or wait > access.longest_wait:
            limited = {"message": "rate limit"}
            raise github.RateLimitExceededException(403, limited, dict(answer.headers))
        if wait >= WORTH_TELLING:
            logger.warning("GitHub's rate limit; trying again in %.0f seconds", wait)
        time.sleep(wait)
    if not all(_is_of_one_item(error) or _is_of_missing(error, may_lack) for error in errors):
        told = "; ".join(str(error.get("message", "")) for error in found["errors"])
        raise github.GithubException(403, {"message": told}, dict(answer.headers))
    data: dict[str, Any] = found["data"]
    return data


def _wait(answer: requests.Response, least: float) -> float:
    """Seconds until GitHub takes the query again, as its headers say; else `least`."""
    given = answer.headers.get("Retry-After", "")
    if given.isdigit():
        return max(least, float(given))
    reset = answer.headers.get("X-RateLimit-Reset", "")
    if reset.isdigit():
        # One more, because it is not said when in that second.
        return max(least, float(reset) - time.time() + 1)
    return least


def _asked(access: GitHubAccess, query: str, variables: dict[str, Any]) -> requests.Response:
    retry = access.retry(harmless=True)
    with requests.Session() as session:
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry))
        return session.post(
            access.graphql_url,
            json={"query": query, "variables": variables},
            headers={"Authorization": f"Bearer {access.token}", "User-Agent": "resolver"},
            auth=lambda request: request,  # so that no ~/.netrc takes the header's place
            timeout=access.timeout,
            allow_redirects=False,
        )
