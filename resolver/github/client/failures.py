"""Errors for requests that GitHub did not fulfil, with texts for a person.

Source: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import github
from github.Requester import Requester

from resolver.errors import Cause, ForgeError
from resolver.models.known_failures import response_failure

MOVED_STATUSES = frozenset({301, 303, 307, 308})
"""Statuses of an answer that names another address, which are never a success."""

SERVER_ERROR_STATUSES = frozenset({500, 502, 503, 504})
"""Statuses of a failure on GitHub's side, after which the request may have taken effect."""

SECONDARY_LIMIT_SECONDS = 60.0
"""How long a request that met the secondary rate limit waits, if GitHub does not say it."""


class ServerFailure(ForgeError):
    """GitHub failed or the connection was lost. The request may or may not have taken effect."""


class RateLimited(ForgeError):
    """GitHub refuses requests for a while; nothing was done.

    `wait` is the number of seconds until it accepts them again, 0 when it does not say.
    """

    def __init__(self, what: str, next_step: str, wait: float) -> None:
        super().__init__(what, next_step, "rate_limit")
        self.wait = wait


def error_from_response(
    error: github.GithubException, operation: str, permission: str | None, message: str
) -> ForgeError:
    """Return the error for an answer that is not a success.

    Args:
        error: The error that PyGithub raised for the answer.
        operation: What was attempted; see `GitHubAccess.wrap_errors`.
        permission: The permission that it needs; see `GitHubAccess.wrap_errors`.
        message: GitHub's message, without secrets.
    """
    status = error.status
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if _is_rate_limit(status, headers, message):
        wait = _seconds_until_reset(headers)
        end = f" after {datetime.now(UTC) + timedelta(seconds=wait):%H:%M:%S} UTC" if wait else ""
        limit_summary = f"could not {operation}: GitHub's rate limit is reached"
        return RateLimited(limit_summary, f"try again{end or ' later'}", wait)
    reason = f" ({message})" if message else ""
    summary = f"could not {operation}: GitHub answered {status}{reason}"
    if status >= 500:
        step = "try again later; see https://www.githubstatus.com"
        return ServerFailure(summary, step, "forge_down")
    return ForgeError(summary, *_next_step(status, message, headers, permission))


def seconds_before_repeating(
    status: int, headers: Mapping[str, str], body: str, is_harmless: bool
) -> float | None:
    """Return the minimum number of seconds before a request may be sent again, None for never.

    One that GitHub refused for its rate limit had no effect. Any other failure is repeated only if
    the request is harmless.
    """
    message = message_in(body) if status in {403, 429} else ""
    if _is_rate_limit(status, headers, message):
        is_secondary = Requester.isSecondaryRateLimitError(message)
        return _seconds_until_reset(headers) or (SECONDARY_LIMIT_SECONDS if is_secondary else 0.0)
    return 0.0 if is_harmless and status in SERVER_ERROR_STATUSES else None


def malformed_response_error(operation: str, fields: str | None = None) -> ForgeError:
    """Return the error for an answer that does not have the documented form.

    `fields` names the unexpected fields, if they are known.
    """
    return ForgeError(
        f"could not {operation}: GitHub's answer does not have the form that its API documents"
        + (f" (at {fields})" if fields else ""),
        "check that GITHUB_API_URL is the address of the REST API; if it is, try again, and "
        "report a bug in Resolver if the error persists",
    )


def message_in(data: Any) -> str:
    """Return GitHub's error message: `message` and what `errors` says about single fields."""
    if isinstance(data, str | bytes):
        try:
            data = json.loads(data)
        except ValueError:
            return ""
    if not isinstance(data, Mapping):
        return ""
    messages = [data.get("message")]
    errors = data.get("errors")
    for detail in errors if isinstance(errors, list) else [errors]:
        if isinstance(detail, Mapping):
            names = (detail.get(key) for key in ("resource", "field", "code"))
            messages.append(detail.get("message") or " ".join(str(name or "") for name in names))
        else:
            messages.append(detail)
    return "; ".join(text for message in messages if (text := str(message or "").strip()))


def _is_rate_limit(status: int, headers: Mapping[str, str], message: str) -> bool:
    """Return True if the answer says that a primary or secondary rate limit was exceeded."""
    is_named = "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
    return status == 429 or (
        status == 403 and (is_named or Requester.isRateLimitError(message.partition(";")[0]))
    )


def _seconds_until_reset(headers: Mapping[str, str]) -> float:
    """Return the seconds until GitHub accepts requests again, or 0 when the headers don't say."""
    wait, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
    if wait.isdigit():
        return float(wait)
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
        # The header has whole seconds: one more, since the limit can end at any time within that
        # second.
        return max(0.0, float(reset) - time.time() + 1)
    return 0.0


def _next_step(
    status: int, message: str, headers: Mapping[str, str], permission: str | None
) -> tuple[str, Cause | None]:
    """Return what a person can do about an answer, and its cause if it is a known one."""
    permission_step = (
        f"give the token the permission `{permission}`" if permission else "check the token"
    )
    if status == 401:
        return "GITHUB_TOKEN is wrong or has expired: set a valid one", "token"
    if status == 403 and "x-github-sso" in headers:
        return "authorize the token for the organization's single sign-on", "sso"
    known_failure = response_failure(message)
    if known_failure is not None:
        return known_failure.next_step, known_failure.cause
    if status in MOVED_STATUSES:
        return "the repository has a new name: ask there, or use the new name", "moved"
    if status == 403:
        return permission_step, "permission"
    if status in {404, 410}:
        return f"check that it exists and that the token can see it; {permission_step}", "not_found"
    if status == 422:
        return "correct what GitHub names in its answer", None
    return "check GITHUB_API_URL and the token", None
