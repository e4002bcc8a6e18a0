"""Implements `DashboardForge` for GitHub: the dashboard issue, and the newest comments of an issue.

The dashboard is recognized by its author, which is Resolver's own account, and by its marker.
"""

from collections.abc import Sequence
from typing import Any

import github

from resolver.github.client.access import GitHubAccess
from resolver.github.comments.find_or_create import write_once
from resolver.github.comments.markers import DASHBOARD
from resolver.github.context.moments import utc
from resolver.github.context.read_task import author_login, newest_comments
from resolver.github.dashboard_forge import DashboardIssue, LastSpeaker

NEWEST = 100
"""Maximum number of newest comments of an issue that are read."""

LISTED = 100
"""Maximum number of open issues by Resolver's account that are searched, oldest first."""

_GONE = {404, 410}


class GitHubBoard:
    """The dashboard of the repository OWNER/NAME. `own` is the login that Resolver writes as."""

    def __init__(self, access: GitHubAccess, repository: str, own: str) -> None:
        self._access = access
        self._repository = access.client().get_repo(repository)
        self._own = own.casefold()

    def voices(self, number: int) -> Sequence[LastSpeaker]:
        name = self._repository.full_name
        with self._access.asking(f"read the comments of {name}#{number}", "issues: read"):
            comments = newest_comments(self._repository.get_issue(number), NEWEST)
            return [
                LastSpeaker(
                    author=author_login(comment),
                    is_bot=str((comment.raw_data.get("user") or {}).get("type")) != "User",
                    own=author_login(comment).casefold() == self._own,
                    at=utc(comment.created_at),
                    body=comment.body or "",
                )
                for comment in reversed(comments)
            ]

    def dashboard(self, number: int) -> DashboardIssue | None:
        with self._access.asking(f"read the dashboard #{number}", "issues: read"):
            try:
                row = self._asked("GET", f"/{number}")
            except github.GithubException as error:
                if error.status not in _GONE:
                    raise
                return None
            return self._ours(row)

    def find(self) -> DashboardIssue | None:
        query = {"creator": self._own, "state": "open", "sort": "created", "direction": "asc"}
        with self._access.asking("look for the dashboard", "issues: read"):
            rows = self._asked("GET", "", parameters={**query, "per_page": LISTED})
            found = (self._ours(row) for row in rows)
            return next((posted for posted in found if posted is not None), None)

    def create(self, title: str, body: str) -> int:
        made = write_once(
            self._access,
            "make the dashboard",
            "issues: write",
            self.find,
            lambda: DashboardIssue(
                int(self._asked("POST", "", input={"title": title, "body": body})["number"]), body
            ),
        )
        return made.number

    def rewrite(self, number: int, body: str) -> None:
        with self._access.asking(f"write the dashboard #{number}", "issues: write"):
            self._asked("PATCH", f"/{number}", input={"body": body})

    def _ours(self, row: Any) -> DashboardIssue | None:
        body, author = str(row.get("body") or ""), str((row.get("user") or {}).get("login") or "")
        ours = author.casefold() == self._own and body.lstrip().startswith(DASHBOARD)
        return (
            DashboardIssue(int(row["number"]), body) if ours and "pull_request" not in row else None
        )

    def _asked(self, verb: str, path: str, **more: Any) -> Any:
        url = f"{self._repository.url}/issues{path}"
        _, data = self._repository.requester.requestJsonAndCheck(verb, url, **more)
        return data
