"""Reads the new comments of a conversation while a run is watching it."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from github.Repository import Repository
from pydantic import BaseModel, ConfigDict

from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.resources import PolledReader

logger = logging.getLogger("resolver.github")

MOST = 100
"""Maximum number of comments per call. Further ones are returned by the next call."""


@dataclass(frozen=True)
class NewComment:
    """A comment, with those fields of the API's list that are used."""

    id: int
    body: str
    author: str
    author_id: int
    author_type: str
    created_at: datetime


class _User(BaseModel):
    model_config = ConfigDict(extra="ignore")

    login: str
    id: int
    type: str = "User"


class _Comment(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: int
    body: str | None = None
    user: _User | None = None
    created_at: datetime


class ThreadNews:
    """Returns each new comment of a conversation once, in order. Not thread-safe.

    since: comments from this time on are returned.
    """

    def __init__(
        self, access: GitHubAccess, repository: Repository, number: int, since: datetime
    ) -> None:
        self._access = access
        self._repository = repository
        self._number = number
        self._since = since.astimezone(UTC)
        self._polled = PolledReader(repository.requester)
        self._seen: set[int] = set()

    def read(self) -> list[NewComment]:
        """Return the comments that are new since the last call. Raises ForgeError."""
        name = self._repository.full_name
        with self._access.asking(f"read the comments of {name}#{self._number}", "issues: read"):
            comments, unread = read_rows(_Comment, self._listing())
        if unread:
            logger.warning("%s comments of %s#%s can't be read", unread, name, self._number)
        new = [c for c in comments if c.id not in self._seen and c.user is not None]
        self._seen |= {c.id for c in comments}
        if len(comments) >= MOST:
            # Continue from the newest comment; otherwise the same full page would be read forever.
            self._since = max(c.created_at for c in comments)
        return [
            NewComment(c.id, c.body or "", c.user.login, c.user.id, c.user.type, c.created_at)
            for c in new
            if c.user is not None
        ]

    def _listing(self) -> Any:
        path = f"{self._repository.url}/issues/{self._number}/comments"
        since = f"{self._since:%Y-%m-%dT%H:%M:%SZ}"
        answer = self._polled.get(path, {"since": since, "per_page": MOST})
        return answer.data if answer.changed else []
