"""Finds Resolver's issue about a failing check of the default branch, and counts earlier attempts.

Attempts are counted from the comments there, so that every run sees the same number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from github.Commit import Commit
from github.Issue import Issue
from github.Repository import Repository

from resolver.config.templates import render
from resolver.github.client.access import GitHubAccess
from resolver.github.client.accounts import is_by
from resolver.github.client.resources import Listing
from resolver.github.comments import find_or_create
from resolver.github.context import own_comments
from resolver.github.text.markers import check_marker, is_of_check, is_of_run

_MAX_SEARCHED = 300
"""Number of newest issues that are searched."""

_MAX_COMMITS = 100
"""Number of newest commits of a branch whose checks are counted."""

_MAX_ISSUES = 10
"""Maximum number of issues whose comments are searched."""


@dataclass(frozen=True)
class CheckConversations:
    """Finds and counts the work on checks in one repository.

    `own_login` is Resolver's login. All methods raise ForgeError.
    """

    access: GitHubAccess
    repository: Repository
    own_login: str

    def branch_tip(self, branch: str) -> str | None:
        """Return the newest commit of the branch, None if there is no such branch."""
        return find_or_create.branch_tip(self.access, self.repository, branch)

    def issues(self) -> dict[int, str]:
        """Return Resolver's open issues about checks, newest first, as number and body."""
        with self.access.wrap_errors(f"list the issues of {self._name}", "issues: read"):
            url = f"{self.repository.url}/issues"
            query = {"state": "open", "sort": "created", "direction": "desc"}
            issues = Listing(self.repository.requester, Issue, url, **query)
            return {
                issue.number: issue.body or ""
                for issue in islice(issues, _MAX_SEARCHED)
                if is_by(issue, self.own_login) and is_of_check(issue.body or "")
            }

    def find_issue(self, check: str) -> int | None:
        """Return the number of Resolver's open issue about this check, or None."""
        return next(
            (number for number, body in self.issues().items() if is_of_check(body, check)), None
        )

    def find_issue_of_run(self, key: str) -> int | None:
        """Return the number of the open issue about a check that has a comment of the run with this
        key, None if there is none. The newest issues are searched."""
        for number in islice(self.issues(), _MAX_ISSUES):
            with self.access.wrap_errors(f"read {self._name}#{number}", "issues: read"):
                if any(is_of_run(body, key) for body in self._own_comment_bodies(number)):
                    return number
        return None

    def open_issue(self, check: str, branch: str, commit: str) -> int:
        """Return the number of the open issue about this check, and create it if necessary."""
        title, _, text = render(
            "comments/check_issue.md.j2", check=check, branch=branch, commit=commit
        ).partition("\n")
        body = f"{check_marker(check)}\n\n{text.strip()}\n"
        return find_or_create.write_once(
            self.access,
            f"open an issue of {self._name}",
            "issues: write",
            lambda: self.find_issue(check),
            lambda: self.repository.create_issue(title.strip(), body).number,
        )

    def count_attempts(self, number: int, branch: str, key_of: Callable[[str], str]) -> int:
        """Return how many comments on an issue or pull request belong to runs for the branch's
        commits before its newest one. `key_of` returns the run key for a commit."""
        with self.access.wrap_errors(f"read {self._name}#{number}", "issues: read"):
            url = f"{self.repository.url}/commits"
            commits = Listing(self.repository.requester, Commit, url, sha=branch)
            keys = [key_of(commit.sha) for commit in islice(commits, 1, _MAX_COMMITS)]
            bodies = self._own_comment_bodies(number)
        return sum(any(is_of_run(body, key) for key in keys) for body in bodies)

    def _own_comment_bodies(self, number: int) -> list[str]:
        issue = self.repository.get_issue(number)
        return [
            comment.body or "" for comment in own_comments.own_comments(issue, self.own_login, None)
        ]

    @property
    def _name(self) -> str:
        return self.repository.full_name
