"""The way to GitHub: the client, and its bounded retries.

Nothing here knows issues or pull requests; `reading.py` and `publishing.py` do.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import urlsplit

import github
import requests
from github.GithubRetry import GithubRetry
from pydantic import ValidationError
from urllib3.connectionpool import ConnectionPool
from urllib3.response import BaseHTTPResponse

from resolver.config.retries import Result, RetryPolicy
from resolver.errors import ResolverError, UsageError
from resolver.github.client.failures import (
    RateLimited,
    ServerTrouble,
    error_of_answer,
    error_of_form,
    message_in,
)
from resolver.github.client.shapes import unexpected_fields
from resolver.github.client.tokens import OneToken, TokenSource

_REPOSITORY = re.compile(r"(?!\.{1,2}/)[A-Za-z0-9_.-]+/(?!\.{1,2}$)[A-Za-z0-9_.-]+")

_MAY_BE_REPEATED = frozenset({"GET", "HEAD", "PUT", "PATCH", "DELETE"})
RATE_LIMITED = frozenset({403, 429})
TROUBLE = frozenset({500, 502, 503, 504})

WORTH_TELLING = 5.0
"""Seconds; a wait at least as long is told in the log."""

DEFAULT_RETRIES = RetryPolicy()

logger = logging.getLogger("resolver.github")


class BoundedRetry(GithubRetry):
    """Retries that never wait longer than a bound and never do a thing twice.

    A POST is sent again only where GitHub has refused it for its rate limit; after a 5xx or a
    lost connection it may have been done.
    Source: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """

    repeated = _MAY_BE_REPEATED
    pause: Callable[[float], None] = staticmethod(time.sleep)

    def new(self, **changes: Any) -> Self:
        """The same after one more attempt."""
        made = super().new(**changes)
        made.pause = self.pause
        return made

    def sleep(self, response: BaseHTTPResponse | None = None) -> None:  # noqa: ARG002
        """Wait as long as `increment` has found out."""
        if (wait := self.get_backoff_time()) > 0:
            self.pause(wait)

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
    retries: how long a write is tried again that is looked for before it is repeated.
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
        retries: RetryPolicy = DEFAULT_RETRIES,
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
        self.retries = retries

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
        made = (HarmlessRetry if harmless or self._harmless else BoundedRetry)(
            total=self.attempts,
            backoff_factor=self.backoff,
            secondary_rate_wait=min(60.0, self.longest_wait),
            max_rate_limit_wait=self.longest_wait,
            raise_on_status=False,
            allowed_methods=None if harmless or self._harmless else _MAY_BE_REPEATED,
        )
        made.pause = self.retries.sleep
        return made

    def in_haste(self, own: str = "", pause_between_writes: float | None = None) -> "GitHubAccess":
        """The same, for what no run is to wait for: one more attempt, and no long wait. own: the
        login we write as, where it is known by now."""
        pause = self.pause_between_writes if pause_between_writes is None else pause_between_writes
        return GitHubAccess(
            self.tokens,
            self.api_url,
            self.server_url,
            self.graphql_url,
            self._bot_login or own,
            timeout=min(self.timeout, 15),
            attempts=min(self.attempts, 1),
            longest_wait=min(self.longest_wait, 5.0),
            backoff=self.backoff,
            pause_between_writes=pause,
            retries=self.retries.lasting(0.0),
        )

    def persistently(
        self,
        what: str,
        permission: str,
        attempt: Callable[[], Result],
        seconds: float | None = None,
    ) -> Result:
        """The result of `attempt`, which does nothing twice however often it is made.

        It is made again while GitHub is in trouble or limits requests, for as long as the access'
        `retries` say, or for so many seconds. what, permission: as `asking` has them. Raises
        ForgeError.
        """

        def asked() -> Result:
            with self.asking(what, permission):
                return attempt()

        policy = self.retries if seconds is None else self.retries.lasting(seconds)
        return policy.call(asked, _wait_after, _tell_wait)

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
            said = self._clean(message_in(error.data))
            raise error_of_answer(error, what, permission, said) from None
        except requests.RequestException as error:
            logger.warning("%s: %s", type(error).__name__, self._clean(str(error)))
            in_time = " in time" if isinstance(error, requests.Timeout) else ""
            raise ServerTrouble(
                f"could not {what}: no answer from {urlsplit(self.api_url).hostname}{in_time}",
                "check the network and GITHUB_API_URL, then try again",
                "forge_down",
            ) from None
        except ValidationError as error:
            raise error_of_form(what, self._clean(unexpected_fields(error))) from None
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
            raise error_of_form(what) from None

    def _clean(self, text: str) -> str:
        return self.tokens.hidden_in(" ".join(text.split()))[:300]


def check_repository(repository: str) -> str:
    """`repository` if it has the form OWNER/NAME, else UsageError."""
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"{repository!r} is not a repository", "give it as OWNER/NAME")
    return repository


def _wait_after(error: ResolverError) -> float | None:
    """Seconds to wait at least before GitHub is asked again; None where it will say the same."""
    if isinstance(error, RateLimited):
        return error.wait
    return 0.0 if isinstance(error, ServerTrouble) else None


def _tell_wait(error: ResolverError, wait: float) -> None:
    logger.warning("%s; trying again in %.0f seconds", error.what, wait)
