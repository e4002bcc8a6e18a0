"""Read resources that are polled, with conditional requests.

Each request carries the ETag of the last answer. As long as nothing has changed, GitHub answers 304
and does not count the request against the rate limit. Source:
https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

import json
from dataclasses import dataclass
from typing import Any

from github.Requester import Requester

NOT_MODIFIED = 304

MOST_REMEMBERED = 50
"""Maximum number of answers that are kept. The one that was stored first is dropped first."""


@dataclass(frozen=True)
class PolledAnswer:
    """An answer as parsed JSON. `changed` is False when it equals the previous answer."""

    data: Any
    changed: bool


class PolledReader:
    """Reads resources and remembers their answers for later requests. Not thread-safe."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester
        self._known: dict[tuple[str, ...], tuple[str, Any]] = {}

    def get(self, path: str, query: dict[str, Any]) -> PolledAnswer:
        """Return one page. Raises what `GitHubAccess.asking` converts into a ForgeError."""
        key = (path, *(f"{name}={value}" for name, value in sorted(query.items())))
        etag, data = self._known.get(key, ("", None))
        known = {"If-None-Match": etag} if etag else {}
        status, headers, body = self._requester.requestJson("GET", path, query, known)
        if status == NOT_MODIFIED:
            return PolledAnswer(data, changed=False)
        if status != 200:
            raise self._requester.createException(status, headers, json.loads(body or "{}"))
        fresh = json.loads(body)
        if len(self._known) >= MOST_REMEMBERED and key not in self._known:
            del self._known[next(iter(self._known))]
        if headers.get("etag"):
            self._known[key] = (headers["etag"], fresh)
        return PolledAnswer(fresh, changed=True)
