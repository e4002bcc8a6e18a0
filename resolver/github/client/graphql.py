"""Send queries to GitHub's GraphQL API.

Only queries are sent, no mutations, so every request may be repeated.
"""

import logging
import time
from collections.abc import Collection
from typing import Any

import github
import requests
from requests.adapters import HTTPAdapter

from resolver.github.client.access import WORTH_TELLING, GitHubAccess

LIMITED = "RATE_LIMITED"
"""Type of the error that reports a rate limit, in an answer with status 200.

Source: https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
"""

logger = logging.getLogger("resolver.github")


def _is_of_one_item(error: Any) -> bool:
    """Return True if an error concerns only one item of a list.

    The answer has null for such an item, for example an issue of another repository that the token
    can't see.
    """
    path = error.get("path") if isinstance(error, dict) else None
    return isinstance(path, list) and any(isinstance(step, int) for step in path)


def _is_of_missing(error: Any, may_lack: Collection[str]) -> bool:
    """Return True if an error only says that one of the fields in `may_lack` does not exist."""
    path = error.get("path") if isinstance(error, dict) else None
    named = isinstance(path, list) and bool(path) and path[-1] in may_lack
    return named and error.get("type") == "NOT_FOUND"


def query_graphql(
    access: GitHubAccess,
    query: str,
    variables: dict[str, Any],
    may_lack: Collection[str] = (),
) -> dict[str, Any]:
    """Return the `data` of the answer to a query.

    Lists in it contain null for items that the token can't see. A rate limit is waited for as in
    the REST API, for no longer than the access allows. Raises what `GitHubAccess.asking` converts
    into a ForgeError.

    Args:
        access: The address of GitHub and the token.
        query: The GraphQL query.
        variables: Its variables.
        may_lack: Fields that are null when the object they ask for does not exist, instead of an
            error.
    """
    for attempt in range(access.attempts + 1):
        answer = _asked(access, query, variables)
        found = answer.json()
        if answer.status_code != 200:
            raise github.GithubException(answer.status_code, found, dict(answer.headers))
        # Errors of a query are reported in an answer with status 200.
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
    """Return the seconds until GitHub accepts the query again.

    They are taken from the answer's headers, and are `least` or more.
    """
    given = answer.headers.get("Retry-After", "")
    if given.isdigit():
        return max(least, float(given))
    reset = answer.headers.get("X-RateLimit-Reset", "")
    if reset.isdigit():
        # The header has whole seconds: one more, since the limit can end at any time within that
        # second.
        return max(least, float(reset) - time.time() + 1)
    return least


def _asked(access: GitHubAccess, query: str, variables: dict[str, Any]) -> requests.Response:
    """Send the query. A POST without side effects is repeated like a GET."""
    retry = access.retry(harmless=True)
    with requests.Session() as session:
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry))
        return session.post(
            access.graphql_url,
            json={"query": query, "variables": variables},
            headers={"Authorization": f"Bearer {access.token}", "User-Agent": "resolver"},
            auth=lambda request: request,  # otherwise ~/.netrc replaces the header
            timeout=access.timeout,
            allow_redirects=False,
        )
