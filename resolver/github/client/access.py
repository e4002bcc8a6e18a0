"""Access to the GitHub API: where it is, the credentials, retries with limits, checks of answers.

This module knows nothing about issues or pull requests; `resolver.github.context` reads them and
`resolver.github.comments` writes to them.

A token may expire in the middle of a run, so it is requested at each use and never stored. An
unexpected element of a list is skipped without affecting the others. An answer that is needed as a
whole is validated by its model; `GitHubAccess.wrap_errors` converts the failure into a
message.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, cast
from urllib.parse import urlsplit

import github
import requests
from github.GithubRetry import GithubRetry
from pydantic import BaseModel, TypeAdapter, ValidationError
from urllib3.connectionpool import ConnectionPool
from urllib3.response import BaseHTTPResponse

from resolver.config.retries import Result, RetryPolicy
from resolver.errors import ResolverError, UsageError
from resolver.github.client.failures import (
    RateLimited,
    ServerFailure,
    error_from_response,
    malformed_response_error,
    message_in,
    seconds_until_reset,
)
from resolver.github.client.requester import MOVED_STATUSES, FollowingRequester


class TokenSource(Protocol):
    """Returns the current token. Implementations are thread-safe."""

    def token(self) -> str:
        """Return a token that is valid for some minutes at least.

        Raises ForgeError if there is none.
        """
        ...

    def redact_tokens(self, text: str) -> str:
        """Return `text` with every token that this source has returned replaced."""
        ...


@dataclass(frozen=True)
class FixedToken:
    """A fixed token: a person's, or the GITHUB_TOKEN of a GitHub Actions job."""

    value: str = field(repr=False)

    def token(self) -> str:
        return self.value

    def redact_tokens(self, text: str) -> str:
        return redact_token(text, self.value)


@dataclass(frozen=True)
class LeasedTokens:
    """The tokens of `source`, for a process that may write only while it has a lease.

    Every request asks for the token, so a process that was suspended past the end of its lease
    sends none. require_lease: raises LeaseLost then.
    """

    source: TokenSource
    require_lease: Callable[[], None]

    def token(self) -> str:
        self.require_lease()
        token = self.source.token()
        self.require_lease()  # issuing a token may have taken long
        return token

    def redact_tokens(self, text: str) -> str:
        return self.source.redact_tokens(text)

    def pause(self, seconds: float) -> None:
        """Wait before a request is repeated. Raises LeaseLost if the lease ends meanwhile."""
        time.sleep(seconds)
        self.require_lease()


def redact_token(text: str, *tokens: str) -> str:
    """Return `text` with each of the tokens replaced by `[token]`."""
    for token in filter(None, tokens):
        text = text.replace(token, "[token]")
    return text


MAX_NAMED_FIELDS = 3
"""Maximum number of unexpected fields that a message names."""

Shape = TypeVar("Shape", bound=BaseModel)

_LIST_ADAPTER = TypeAdapter(list[Any])


def read_rows(model: type[Shape], rows: Any) -> tuple[list[Shape], int]:
    """Return the elements of a list that have the expected form, and how many have not.

    Raises ValidationError if `rows` is not a list.
    """
    elements: list[Shape] = []
    invalid_count = 0
    for row in _LIST_ADAPTER.validate_python(rows):
        try:
            elements.append(model.model_validate(row))
        except ValidationError:
            invalid_count += 1
    return elements, invalid_count


def unexpected_fields(error: ValidationError) -> str | None:
    """Return the names of the first missing or unexpected fields of an answer.

    They look like `start_line, steps.0.name`. The result is None if the answer as a whole is
    something else. The fields' values are never included.
    """
    # Values are never quoted: they may contain a secret, or any stranger's text.
    locations: Sequence[tuple[int | str, ...]] = [
        detail["loc"] for detail in error.errors(include_url=False, include_input=False)
    ]
    field_names = dict.fromkeys(".".join(map(str, location)) for location in locations if location)
    return ", ".join(list(field_names)[:MAX_NAMED_FIELDS]) or None


_REPOSITORY = re.compile(r"(?!\.{1,2}/)[A-Za-z0-9_.-]+/(?!\.{1,2}$)[A-Za-z0-9_.-]+")

_IDEMPOTENT_METHODS = frozenset({"GET", "HEAD", "PUT", "PATCH", "DELETE"})
RATE_LIMIT_STATUSES = frozenset({403, 429})
"""Status codes with which GitHub enforces its rate limit. 403 can have other reasons."""

SERVER_ERROR_STATUSES = frozenset({500, 502, 503, 504})
"""Status codes of a failure on GitHub's side."""

MIN_LOGGED_WAIT_SECONDS = 5.0
"""Seconds. A wait of at least this length is logged."""

DEFAULT_RETRIES = RetryPolicy()

logger = logging.getLogger("resolver.github")


class BoundedRetry(GithubRetry):
    """Retries with a maximum wait that never perform a write twice.

    A method that is not in `allowed_methods` is repeated only if GitHub refused it for its rate
    limit; after a 5xx answer or a lost connection it may have taken effect. Source:
    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """

    pause: Callable[[float], None] = staticmethod(time.sleep)

    def new(self, **changes: Any) -> Self:
        """Return a copy with `changes`. urllib3 calls this after each attempt."""
        retry = super().new(**changes)
        retry.pause = self.pause
        return retry

    def sleep(self, response: BaseHTTPResponse | None = None) -> None:  # noqa: ARG002
        """Wait for the time that `increment` determined."""
        if (wait := self.get_backoff_time()) > 0:
            self.pause(wait)

    def is_retry(
        self,
        method: str,
        status_code: int,
        has_retry_after: bool = False,  # noqa: ARG002 - urllib3's signature
    ) -> bool:
        """Return True if a request with this answer may be sent again."""
        if status_code in MOVED_STATUSES:
            return True  # to `increment`, which raises
        if not self.total:
            return False
        if status_code in RATE_LIMIT_STATUSES:
            return True
        is_repeatable = not self.allowed_methods or method.upper() in self.allowed_methods
        return is_repeatable and status_code in SERVER_ERROR_STATUSES

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        """Count an attempt and determine the wait before the next one.

        Raises RateLimitExceededException at once when GitHub asks for a wait longer than the
        maximum, and GithubException for an answer that names another address.
        """
        if response is not None and response.status in MOVED_STATUSES:
            response.drain_conn()
            raise github.GithubException(
                response.status, {"message": "the repository moved"}, dict(response.headers)
            )
        wait = seconds_until_reset(response.headers) if response is not None else 0.0
        if response is not None and wait > (self.max_rate_limit_wait or 0):
            # Returns the connection to the pool.
            response.drain_conn()
            raise github.RateLimitExceededException(
                response.status, {"message": "rate limit"}, dict(response.headers)
            )
        next_retry = super().increment(method, url, response, error, _pool, _stacktrace)  # type: ignore[arg-type]
        wait = max(wait, next_retry.get_backoff_time())
        # `sleep` asks the new object for its wait: the longer of GitHub's and of the exponential
        # backoff.
        next_retry.get_backoff_time = lambda: wait  # type: ignore[method-assign]
        if wait >= MIN_LOGGED_WAIT_SECONDS:
            status = response.status if response is not None else "nothing"
            logger.warning("GitHub answered %s; trying again in %.0f seconds", status, wait)
        return cast(Self, next_retry)


class _SourceAuth(github.Auth.Auth):
    """Makes PyGithub ask the token source for the token at each request."""

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
    """The address of GitHub and the account that Resolver uses there.

    It is not modified after it was created.

    Args:
        token: A fixed token, or a source of the current one.
        api_url: Address of the REST API.
        server_url: Address of the web pages and of git over HTTP.
        graphql_url: Address of the GraphQL API.
        bot_login: Login of Resolver's account; "" if GitHub has to be asked with the token.
        timeout: Seconds to wait for an answer.
        attempts: How often a failed request is repeated.
        max_wait_seconds: Maximum number of seconds to wait before a request is repeated.
        pause_between_writes: Minimum number of seconds between two writes.
        harmless: True if every request made with this access may safely be performed twice.
        retries: How long `retry_until_success` repeats an operation; its waits are those of all
            retries.
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
        max_wait_seconds: float = 90.0,
        pause_between_writes: float = 1.0,
        harmless: bool = False,
        retries: RetryPolicy = DEFAULT_RETRIES,
    ) -> None:
        self.tokens: TokenSource = FixedToken(token) if isinstance(token, str) else token
        self.api_url, self.server_url, self.graphql_url = api_url, server_url, graphql_url
        self.bot_login = bot_login
        self.timeout = timeout
        self.attempts = attempts
        self.max_wait_seconds = max_wait_seconds
        self.pause_between_writes = pause_between_writes
        self._harmless = harmless
        self.retries = retries

    @property
    def token(self) -> str:
        """The current token. Don't store it, since it may expire. Raises ForgeError."""
        return self.tokens.token()

    def retry(self, harmless: bool = False) -> BoundedRetry:
        """Return the retry policy of a request.

        Set `harmless` if the request may safely be performed twice.
        """
        is_harmless = harmless or self._harmless
        retry = BoundedRetry(
            total=self.attempts,
            backoff_factor=self.retries.first_wait_seconds,
            secondary_rate_wait=min(60.0, self.max_wait_seconds),
            max_rate_limit_wait=self.max_wait_seconds,
            raise_on_status=False,
            allowed_methods=None if is_harmless else _IDEMPOTENT_METHODS,
        )
        retry.pause = self.retries.sleep
        return retry

    def with_short_timeouts(
        self, bot_login: str = "", pause_between_writes: float | None = None
    ) -> "GitHubAccess":
        """Return an access for requests that must not hold up a run: one retry and no long wait.

        Args:
            bot_login: Login of Resolver's account, where it is known by now.
            pause_between_writes: Minimum number of seconds between two writes; unchanged when None.
        """
        access = copy(self)
        access.bot_login = self.bot_login or bot_login
        access.timeout = min(self.timeout, 15)
        access.attempts = min(self.attempts, 1)
        access.max_wait_seconds = min(self.max_wait_seconds, 5.0)
        access.retries = self.retries.lasting(0.0)
        if pause_between_writes is not None:
            access.pause_between_writes = pause_between_writes
        return access

    def retry_until_success(
        self,
        operation: str,
        permission: str,
        attempt: Callable[[], Result],
        seconds: float | None = None,
    ) -> Result:
        """Call `attempt` until it succeeds, and return its result. Raises ForgeError.

        It is called again while GitHub is unavailable or limits requests.

        Args:
            operation: What is attempted; see `wrap_errors`.
            permission: The permission that it needs; see `wrap_errors`.
            attempt: The operation. It must be idempotent: repeating it must not do anything twice.
            seconds: How long to retry; the time of `retries` when None.
        """

        def attempt_once() -> Result:
            with self.wrap_errors(operation, permission):
                return attempt()

        policy = self.retries if seconds is None else self.retries.lasting(seconds)
        return policy.call(attempt_once, _min_retry_wait, _log_retry)

    def requester(self) -> FollowingRequester:
        """Return PyGithub's client, whose objects are requested when needed. Raises UsageError."""
        for name, url in (
            ("GITHUB_API_URL", self.api_url),
            ("GITHUB_SERVER_URL", self.server_url),
            ("GITHUB_GRAPHQL_URL", self.graphql_url),
        ):
            parts = urlsplit(url)
            if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
                raise UsageError(f"{name} is not an address: {url!r}", "write it as https://HOST")
        if self.tokens == FixedToken(""):
            raise UsageError("there is no GitHub token", "set GITHUB_TOKEN")
        # PyGithub's own handler prints refused requests to stderr, past the filters of Resolver's
        # log.
        logging.getLogger("github").handlers.clear()
        return FollowingRequester(
            auth=_SourceAuth(self.tokens),
            base_url=self.api_url.rstrip("/"),
            timeout=self.timeout,
            user_agent="resolver",
            per_page=100,
            verify=True,
            retry=self.retry(),
            pool_size=None,
            seconds_between_requests=None,
            seconds_between_writes=self.pause_between_writes or None,
            lazy=True,
        )

    @contextmanager
    def wrap_errors(self, operation: str, permission: str = "") -> Iterator[None]:
        """Convert every error raised inside the block into a ForgeError.

        The token never appears in its text.

        Args:
            operation: What is attempted, for a person, such as "read issue 3 of o/r".
            permission: The permission that the token needs for it, such as "issues: write".
        """
        try:
            yield
        except github.GithubException as error:
            message = self._clean(message_in(error.data))
            raise error_from_response(error, operation, permission, message) from None
        except requests.RequestException as error:
            logger.warning("%s: %s", type(error).__name__, self._clean(str(error)))
            timing = " in time" if isinstance(error, requests.Timeout) else ""
            raise ServerFailure(
                f"could not {operation}: no answer from {urlsplit(self.api_url).hostname}{timing}",
                "check the network and GITHUB_API_URL, then try again",
                "forge_down",
            ) from None
        except ValidationError as error:
            fields = unexpected_fields(error)
            raise malformed_response_error(operation, fields and self._clean(fields)) from None
        except (
            AssertionError,
            AttributeError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
            github.BadAttributeException,
        ) as error:
            # The text of a library's error does not help the people who read the message; it is
            # logged.
            logger.warning("%s: %s", type(error).__name__, self._clean(str(error)))
            raise malformed_response_error(operation) from None

    def _clean(self, text: str) -> str:
        """Return `text` on one line, without tokens, cut to 300 characters."""
        return self.tokens.redact_tokens(" ".join(text.split()))[:300]


def check_repository(repository: str) -> str:
    """Return `repository` if it has the form OWNER/NAME. Raises UsageError."""
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"{repository!r} is not a repository", "give it as OWNER/NAME")
    return repository


def _min_retry_wait(error: ResolverError) -> float | None:
    """Return the minimum seconds to wait before a retry, or None if a retry is pointless."""
    if isinstance(error, RateLimited):
        return error.wait
    return 0.0 if isinstance(error, ServerFailure) else None


def _log_retry(error: ResolverError, wait: float) -> None:
    """Log that a failed operation is repeated after `wait` seconds."""
    logger.warning("%s; trying again in %.0f seconds", error.what, wait)
