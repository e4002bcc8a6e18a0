"""The way to GitHub: the client, its bounded retries, and its failures in words.

Nothing here knows issues or pull requests; `reading.py` and `publishing.py` do.
"""

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import urlsplit

import github
import requests
from github.GithubRetry import GithubRetry
from pydantic import ValidationError
from urllib3.connectionpool import ConnectionPool
from urllib3.response import BaseHTTPResponse

from resolver.causes import of_answer
from resolver.errors import Cause, ForgeError, UsageError
from resolver.forge.github.shapes import unexpected_fields
from resolver.forge.github.tokens import OneToken, TokenSource

_REPOSITORY = re.compile(r"(?!\.{1,2}/)[A-Za-z0-9_.-]+/(?!\.{1,2}$)[A-Za-z0-9_.-]+")

_MAY_BE_REPEATED = frozenset({"GET", "HEAD", "PUT", "PATCH", "DELETE"})
RATE_LIMITED = frozenset({403, 429})
TROUBLE = frozenset({500, 502, 503, 504})

WORTH_TELLING = 5.0
"""Seconds; a wait at least as long is told in the log."""

logger = logging.getLogger("resolver.forge")


class ServerTrouble(ForgeError):
    """GitHub failed or the connection was lost: what was asked may have been done or not."""


class BoundedRetry(GithubRetry):
    """Retries that never wait longer than a bound and never do a thing twice.

    A POST is sent again only where GitHub has refused it for its rate limit; after a 5xx or a
    lost connection it may have been done.
    Source: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """

    repeated = _MAY_BE_REPEATED

    def is_retry(
        self,
        method: str,
        status_code: int,
        has_retry_after: bool = False,  # noqa: ARG002 - urllib3's signature
    ) -> bool:
        if not self.total:
            return False
        if status_code in RATE_LIMITED:
            return True
        return method.upper() in self.repeated and status_code in TROUBLE

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        """Give up at once when GitHub asks to wait longer than the bound."""
        wait = self._asked_to_wait(response) if response is not None else 0.0
        if response is not None and wait > (self.max_rate_limit_wait or 0):
            response.drain_conn()
            raise github.RateLimitExceededException(
                response.status, {"message": "rate limit"}, dict(response.headers)
            )
        again = super().increment(method, url, response, error, _pool, _stacktrace)  # type: ignore[arg-type]
        wait = max(wait, again.get_backoff_time())
        again.get_backoff_time = lambda: wait  # type: ignore[method-assign]
        if wait >= WORTH_TELLING:
            status = response.status if response is not None else "nothing"
            logger.warning("GitHub answered %s; trying again in %.0f seconds", status, wait)
        return cast(Self, again)

    def _asked_to_wait(self, response: BaseHTTPResponse) -> float:
        """Seconds until GitHub takes the request again, 0 when it does not say."""
        if response.status not in RATE_LIMITED:
            return self.get_retry_after(response) or 0.0
        given = self.get_retry_after(response)
        reset = response.headers.get("X-RateLimit-Reset", "")
        if given is None and response.headers.get("X-RateLimit-Remaining") == "0":
            # One more, because it is not said when in that second.
            return max(0.0, float(reset) - time.time() + 1) if reset.isdigit() else 0.0
        return given or 0.0


class HarmlessRetry(BoundedRetry):
    """For what may be done twice, as a query or a token: a POST is sent again as well."""

    repeated = _MAY_BE_REPEATED | {"POST"}


class _Shown(github.Auth.Auth):
    """Lets PyGithub ask for the token with each request."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source

    @property
    def token_type(self) -> str:
        return "Bearer"

    @property
    def token(self) -> str:
        return self._source.token()

    @property
    def _masked_token(self) -> str:
        return "[token]"


class GitHubAccess:
    """Where GitHub is and as whom we speak. Times in seconds; not changed once made.

    token: one that stays, or where to ask for the current one.
    bot_login: the login we write as; asked of GitHub when empty.
    harmless: whatever is asked by this access may be asked twice.
    """

    def __init__(
        self,
        token: str | TokenSource,
        api_url: str = "https://api.github.com",
        server_url: str = "https://github.com",
        graphql_url: str = "https://api.github.com/graphql",
        bot_login: str = "",
        timeout: int = 30,
        attempts: int = 4,
        longest_wait: float = 90.0,
        backoff: float = 1.0,
        pause_between_writes: float = 1.0,
        harmless: bool = False,
    ) -> None:
        self.tokens: TokenSource = OneToken(token) if isinstance(token, str) else token
        self.api_url, self.server_url, self.graphql_url = api_url, server_url, graphql_url
        self._bot_login = bot_login
        self.timeout = timeout
        self.attempts = attempts
        self.longest_wait = longest_wait
        self.backoff = backoff
        self.pause_between_writes = pause_between_writes
        self._harmless = harmless

    @property
    def token(self) -> str:
        """The token to show now; not to be kept, since it may end. Raises ForgeError."""
        return self.tokens.token()

    @property
    def bot_login(self) -> str:
        """The login we write as, "" when it is neither set nor known of the token's holder."""
        return self._bot_login or self.tokens.login()

    def retry(self, harmless: bool = False) -> BoundedRetry:
        """How often and how long a request is tried. harmless: it may be done twice."""
        return (HarmlessRetry if harmless or self._harmless else BoundedRetry)(
            total=self.attempts,
            backoff_factor=self.backoff,
            secondary_rate_wait=min(60.0, self.longest_wait),
            max_rate_limit_wait=self.longest_wait,
            raise_on_status=False,
            allowed_methods=None if harmless or self._harmless else _MAY_BE_REPEATED,
        )

    def in_haste(self) -> "GitHubAccess":
        """The same, for what no run is to wait for: one more attempt, and no long wait."""
        return GitHubAccess(
            self.tokens,
            self.api_url,
            self.server_url,
            self.graphql_url,
            self._bot_login,
            timeout=min(self.timeout, 15),
            attempts=min(self.attempts, 1),
            longest_wait=min(self.longest_wait, 5.0),
            backoff=self.backoff,
            pause_between_writes=self.pause_between_writes,
        )

    def client(self) -> github.Github:
        """A PyGithub client that asks for nothing before it must. Raises UsageError."""
        for name, url in (
            ("GITHUB_API_URL", self.api_url),
            ("GITHUB_SERVER_URL", self.server_url),
            ("GITHUB_GRAPHQL_URL", self.graphql_url),
        ):
            parts = urlsplit(url)
            if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
                raise UsageError(f"{name} is not an address: {url!r}", "give it like https://HOST")
        if self.tokens == OneToken(""):
            raise UsageError("there is no GitHub token", "set GITHUB_TOKEN")
        # PyGithub's own handler prints each refusal on stderr, past the filters of our log.
        logging.getLogger("github").handlers.clear()
        return github.Github(
            auth=_Shown(self.tokens),
            base_url=self.api_url.rstrip("/"),
            timeout=self.timeout,
            user_agent="resolver",
            per_page=100,
            retry=self.retry(),
            seconds_between_requests=None,
            seconds_between_writes=self.pause_between_writes or None,
            lazy=True,
        )

    @contextmanager
    def asking(self, what: str, permission: str = "") -> Iterator[None]:
        """Everything that goes wrong inside becomes a ForgeError.

        what: the thing tried, like "read issue 3 of o/r"; permission: what the token needs for
        it, like "issues: write". The token is never in the words.
        """
        try:
            yield
        except github.GithubException as error:
            raise self._told(error, what, permission) from None
        except requests.RequestException as error:
            logger.warning("%s: %s", type(error).__name__, self._clean(str(error)))
            in_time = " in time" if isinstance(error, requests.Timeout) else ""
            raise ServerTrouble(
                f"could not {what}: no answer from {urlsplit(self.api_url).hostname}{in_time}",
                "check the network and GITHUB_API_URL, then try again",
                "forge_down",
            ) from None
        except ValidationError as error:
            raise _unexpected(what, self._clean(unexpected_fields(error))) from None
        except (
            AssertionError,
            AttributeError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
            github.BadAttributeException,
        ) as error:
            # A library's words say nothing to the people who read of it; the log has them.
            logger.warning("%s: %s", type(error).__name__, self._clean(str(error)))
            raise _unexpected(what) from None

    def _told(self, error: github.GithubException, what: str, permission: str) -> ForgeError:
        status = error.status
        headers = {k.lower(): v for k, v in (error.headers or {}).items()}
        said = self._clean(_message(error.data))
        told = f"could not {what}: GitHub answered {status}" + (f" ({said})" if said else "")
        if _is_rate_limit(error, headers):
            limited = f"could not {what}: GitHub's rate limit is reached"
            return ForgeError(limited, _when_free(headers), "rate_limit")
        if status >= 500:
            step = "try again later; https://www.githubstatus.com may know"
            return ServerTrouble(told, step, "forge_down")
        return ForgeError(told, *_next_step(status, said, headers, permission))

    def _clean(self, text: str) -> str:
        return self.tokens.hidden_in(" ".join(text.split()))[:300]


def _unexpected(what: str, fields: str = "") -> ForgeError:
    """The error of an answer that is not as GitHub documents it. fields: where, if it is known."""
    return ForgeError(
        f"could not {what}: GitHub's answer is not of the form that its API documents"
        + (f" (at {fields})" if fields else ""),
        "check that GITHUB_API_URL is the address of the REST API; if it is, try again, and report "
        "it as a fault of Resolver if it stays",
    )


def check_repository(repository: str) -> str:
    """`repository` if it has the form OWNER/NAME, else UsageError."""
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"{repository!r} is not a repository", "give it as OWNER/NAME")
    return repository


def _message(data: Any) -> str:
    """GitHub's own words: `message`, and what it says of single fields."""
    if isinstance(data, bytes):
        try:
            data = json.loads(data)
        except ValueError:
            return ""
    if not isinstance(data, Mapping):
        return ""
    said = [str(data.get("message") or "")]
    for detail in data.get("errors") or []:
        if isinstance(detail, Mapping):
            named = " ".join(str(detail.get(k) or "") for k in ("resource", "field", "code"))
            said.append(str(detail.get("message") or named.strip()))
        else:
            said.append(str(detail))
    return "; ".join(part for part in said if part)


def _is_rate_limit(error: github.GithubException, headers: Mapping[str, str]) -> bool:
    return (
        isinstance(error, github.RateLimitExceededException)
        or error.status == 429
        or (error.status == 403 and "retry-after" in headers)
        or (error.status == 403 and headers.get("x-ratelimit-remaining") == "0")
    )


def _when_free(headers: Mapping[str, str]) -> str:
    wait = headers.get("retry-after", "")
    if wait.isdigit():
        return f"try again in {wait} seconds"
    reset = headers.get("x-ratelimit-reset", "")
    if reset.isdigit():
        moment = datetime.fromtimestamp(int(reset), UTC)
        return f"try again after {moment:%H:%M:%S} UTC"
    return "try again later"


def _next_step(
    status: int, said: str, headers: Mapping[str, str], permission: str
) -> tuple[str, Cause]:
    """What a person does about an answer, and its cause where it is one of those that are known."""
    needs = f"give the token the permission `{permission}`" if permission else "check the token"
    if status == 401:
        return "GITHUB_TOKEN is wrong or has expired: set a valid one", "token"
    if status == 403 and "x-github-sso" in headers:
        return "authorize the token for the organization's single sign-on", "sso"
    known = of_answer(said)
    if known is not None:
        return known.next_step, known.cause
    if status in {301, 302, 307, 308}:
        return "the repository has another name now: ask there, or use the new one", "moved"
    if status == 403:
        return needs, "permission"
    if status in {404, 410}:
        return f"check that it exists and that the token can see it; {needs}", "not_found"
    if status == 422:
        return "GitHub found the request invalid; the words in brackets say why", ""
    return "check GITHUB_API_URL and the token", ""
