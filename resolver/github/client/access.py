"""Access to the GitHub API: where it is, the credentials, and errors as messages for a person.

This module knows nothing about issues or pull requests; `resolver.github.context` reads them and
`resolver.github.comments` writes to them.

A token may expire in the middle of a run, so it is requested at each use and never stored. An
unexpected element of a list is skipped without affecting the others. An answer that is needed as a
whole is validated by its model; `GitHubAccess.wrap_errors` converts the failure into a
message.
"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import github
import requests
from pydantic import BaseModel, TypeAdapter, ValidationError

from resolver.config.retries import Result, RetryPolicy
from resolver.errors import ResolverError, UsageError
from resolver.github.client.failures import (
    RateLimited,
    ServerFailure,
    error_from_response,
    malformed_response_error,
    message_in,
)
from resolver.github.client.requester import GitHubRequester

logger = logging.getLogger("resolver.github")


class TokenSource(Protocol):
    """Returns the current token. Implementations are thread-safe."""

    def token(self) -> str:
        """Return a token that is valid for some minutes at least.

        Raises ForgeError if there is none.
        """
        ...

    def redact_tokens(self, text: str) -> str:
        """Return `text` with the tokens that this source has returned replaced."""
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


def redact_token(text: str, token: str | None) -> str:
    """Return `text` with the token replaced by `[token]`."""
    return text.replace(token, "[token]") if token else text


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


_IDEMPOTENT_METHODS = frozenset({"GET", "HEAD", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True)
class GitHubAccess:
    """The address of GitHub and the account that Resolver uses there.

    Attributes:
        tokens: The source of the current token.
        api_url: Address of the REST API.
        server_url: Address of the web pages and of git over HTTP.
        graphql_url: Address of the GraphQL API. Every request to it may be performed twice:
            queries, and mutations that set a state.
        bot_login: Login of Resolver's account; None if GitHub has to be asked with the token.
        timeout: Seconds to wait for an answer.
        attempts: How often a failed request is repeated.
        max_wait_seconds: Maximum number of seconds to wait before a request is repeated.
        pause_between_writes: Minimum number of seconds between two writes.
        harmless: True if every request made with this access may safely be performed twice.
        retries: How long `retry_until_success` repeats an operation; its waits are those of all
            retries.
    """

    tokens: TokenSource
    api_url: str = "https://api.github.com"
    server_url: str = "https://github.com"
    graphql_url: str = "https://api.github.com/graphql"
    bot_login: str | None = None
    timeout: int = 30
    attempts: int = 4
    max_wait_seconds: float = 90.0
    pause_between_writes: float = 1.0
    harmless: bool = False
    retries: RetryPolicy = field(default_factory=RetryPolicy)

    @property
    def token(self) -> str:
        """The current token. Don't store it, since it may expire. Raises ForgeError."""
        return self.tokens.token()

    def with_short_timeouts(self, **changes: Any) -> "GitHubAccess":
        """Return an access for requests that must not hold up a run: one retry and no long wait.

        `changes` are other values of its attributes.
        """
        return replace(
            self,
            timeout=min(self.timeout, 15),
            attempts=min(self.attempts, 1),
            max_wait_seconds=min(self.max_wait_seconds, 5.0),
            retries=self.retries.lasting(0.0),
            **changes,
        )

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
        return policy.call(attempt_once, _min_retry_wait)

    def requester(self) -> GitHubRequester:
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
        # PyGithub's own handler prints to stderr, past the filters of Resolver's log.
        logging.getLogger("github").handlers.clear()
        return GitHubRequester(
            self._is_harmless,
            self.attempts,
            self.max_wait_seconds,
            self.retries,
            auth=_SourceAuth(self.tokens),
            base_url=self.api_url.rstrip("/"),
            timeout=self.timeout,
            user_agent="resolver",
            per_page=100,
            verify=True,
            pool_size=None,
            seconds_between_writes=self.pause_between_writes or None,
            lazy=True,
        )

    def _is_harmless(self, method: str, url: str) -> bool:
        return self.harmless or method in _IDEMPOTENT_METHODS or url == self.graphql_url

    @contextmanager
    def wrap_errors(self, operation: str, permission: str | None = None) -> Iterator[None]:
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


_REPOSITORY = re.compile(r"(?!\.{1,2}/)[A-Za-z0-9_.-]+/(?!\.{1,2}$)[A-Za-z0-9_.-]+")


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


Shape = TypeVar("Shape", bound=BaseModel)


def read_rows(model: type[Shape], rows: Any) -> tuple[list[Shape], int]:
    """Return the elements of a list that have the expected form, and how many have not.

    Raises ValidationError if `rows` is not a list.
    """
    elements: list[Shape] = []
    invalid_count = 0
    for row in TypeAdapter(list[Any]).validate_python(rows):
        try:
            elements.append(model.model_validate(row))
        except ValidationError:
            invalid_count += 1
    return elements, invalid_count


MAX_NAMED_FIELDS = 3
"""Maximum number of unexpected fields that a message names."""


def unexpected_fields(error: ValidationError) -> str | None:
    """Return the names of the first missing or unexpected fields of an answer.

    They look like `start_line, steps.0.name`. The result is None if the answer as a whole is
    something else. The fields' values are never included: they may contain a secret, or any
    stranger's text.
    """
    details = error.errors(include_url=False, include_input=False)
    names = dict.fromkeys(".".join(map(str, detail["loc"])) for detail in details if detail["loc"])
    return ", ".join(list(names)[:MAX_NAMED_FIELDS]) or None
