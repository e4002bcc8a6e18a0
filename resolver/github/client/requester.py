"""Sends requests to the REST API, also those of a repository that was renamed or transferred.

GitHub answers a request under a repository's old name with the address of the same resource under
the repository's id: 301 for reads, 307 for writes, which are to be sent there again. PyGithub takes
307 for a success, and drops the query of a request that it sends again. Source:
https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api#follow-redirects
"""

import re
from typing import Any
from urllib.parse import urlsplit

import github
from github.Repository import Repository
from github.Requester import Requester

MOVED_STATUSES = frozenset({301, 307, 308})
"""Statuses of an answer that names another address, which are never a success."""


class FollowingRequester(Requester):
    """A requester of PyGithub that follows a repository to its present address, once a request.

    Attributes:
        repository_ids: The ids of the repositories that requests were redirected to, by the path
            that was requested.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.repository_ids: dict[str, int] = {}

    def requestJson(self, verb: str, url: str, *args: Any, **more: Any) -> Any:
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
        if error.status not in MOVED_STATUSES:
            return None
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
