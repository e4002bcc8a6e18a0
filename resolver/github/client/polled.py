"""What is read again and again: asked for with the ETag of the last answer, so that as long as
nothing has changed GitHub answers 304 and counts no request against the rate limit.

Source: https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

import json
from dataclasses import dataclass
from typing import Any

from github.Requester import Requester

NOT_MODIFIED = 304

MOST_REMEMBERED = 50
"""Answers; the one that was asked for first is forgotten first."""


@dataclass(frozen=True)
class PolledAnswer:
    """data: as JSON. changed: False when it is as it was the last time it was asked for."""

    data: Any
    changed: bool


class PolledReader:
    """One client's answers that may be asked for again. Not for several threads at a time."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester
        self._known: dict[tuple[str, ...], tuple[str, Any]] = {}

    def get(self, path: str, query: dict[str, Any]) -> PolledAnswer:
        """One page. Raises what `GitHubAccess.asking` turns into a ForgeError."""
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
