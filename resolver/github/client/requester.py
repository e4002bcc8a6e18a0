"""Sends requests to GitHub's APIs: repeats those that failed, follows a repository that moved.

Every attempt asks for the token, so a process that lost its lease while it waited sends no more.

GitHub answers a request under a repository's old name with the address of the same resource under
the repository's id: 301 for reads, 307 for writes, which are to be sent there again. PyGithub takes
307 for a success, and drops the query of a request that it sends again. Source:
https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api#follow-redirects
"""

import logging
import re
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import urlsplit

import github
import requests
from github.Repository import Repository
from github.Requester import Requester
from urllib3.response import BaseHTTPResponse
from urllib3.util import Retry

from resolver.config.retries import RetryPolicy
from resolver.github.client.failures import MOVED_STATUSES, seconds_before_repeating

logger = logging.getLogger("resolver.github")


class _RaiseIfMoved(Retry):
    """Raises for an answer that names another address, which PyGithub would treat wrongly.

    It treats one right: 302 to the file that a read asks for.
    """

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:  # noqa: ARG002
        """Return True for an answer for which `increment` is to raise."""
        return status_code in MOVED_STATUSES or (status_code == 302 and method != "GET")

    def increment(self, *args: Any, **more: Any) -> Self:
        """Raise for any answer: urllib3 calls this for those that `is_retry` names."""
        response: BaseHTTPResponse | None = more.get("response")
        if response is not None:
            response.drain_conn()
            message = {"message": "the repository moved"}
            raise github.GithubException(response.status, message, dict(response.headers))
        return super().increment(*args, **more)


class GitHubRequester(Requester):
    """A requester of PyGithub that repeats requests within limits, and never a write twice.

    Args:
        is_harmless: Returns whether a request, by its method and address, may be performed twice.
        attempts: Maximum number of repetitions.
        max_wait_seconds: Maximum number of seconds that GitHub may ask to wait before one.
        retries: The waits that GitHub does not ask for.
        arguments: Those of PyGithub's requester.

    Attributes:
        repository_ids: The ids of the repositories that requests were redirected to, by the path
            that was requested.
    """

    def __init__(
        self,
        is_harmless: Callable[[str, str], bool],
        attempts: int,
        max_wait_seconds: float,
        retries: RetryPolicy,
        **arguments: Any,
    ) -> None:
        moved = _RaiseIfMoved(0, read=False)
        super().__init__(**arguments, retry=moved)
        self._is_harmless, self._attempts = is_harmless, attempts
        self._max_wait_seconds, self._retries = max_wait_seconds, retries
        self.repository_ids: dict[str, int] = {}

    def requestJson(self, verb: str, url: str, *args: Any, **more: Any) -> Any:
        """Send a request until its answer is final, and return that."""
        is_harmless = self._is_harmless(verb, url)
        for number in range(self._attempts):
            wait: float | None = 0.0
            status: int | None = None
            try:
                status, headers, body = self._request_following(verb, url, *args, **more)
            except requests.RequestException:
                if not is_harmless:
                    raise
            else:
                wait = seconds_before_repeating(status, headers, body, is_harmless)
                if wait is None or wait > self._max_wait_seconds:
                    return status, headers, body
            wait = max(wait, self._retries.first_wait_seconds * 2**number)
            reason = f"GitHub answered {status}" if status else "no answer from GitHub"
            logger.warning("%s; trying again in %.0f seconds", reason, wait)
            self._retries.sleep(wait)
        return self._request_following(verb, url, *args, **more)

    def _request_following(self, verb: str, url: str, *args: Any, **more: Any) -> Any:
        """Send a request, and send it again to where the answer redirects it on the same server."""
        try:
            return super().requestJson(verb, url, *args, **more)
        except github.GithubException as error:
            target = self._present_path(error)
            if target is None:
                raise
            self.repository_ids[url] = int(target.split("/")[2])
        return super().requestJson(verb, target, *args, **more)

    def _present_path(self, error: github.GithubException) -> str | None:
        """Return the path that the answer redirects to, None if it leads to no repository here."""
        headers = {name.lower(): value for name, value in (error.headers or {}).items()}
        base, target = urlsplit(self.base_url), urlsplit(str(headers.get("location") or ""))
        is_same_server = (base.scheme, base.netloc) == (target.scheme, target.netloc)
        path = target.path.removeprefix(base.path)
        is_repository = re.match(r"/repositories/\d+(?:/|$)", path) is not None
        return path if is_same_server and is_repository else None


def repository_at(requester: Requester, name: str) -> Repository:
    """Return the repository OWNER/NAME. No request is sent for it before one is needed."""
    known = {"url": f"{requester.base_url}/repos/{name}", "full_name": name}
    return Repository(requester, {}, known, completed=False)
