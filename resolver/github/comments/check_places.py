"""Where a failing check is worked on: our own pull request, or an issue of ours about the default
branch; and how often that was tried. What is counted is what we have published there, so that
every run sees it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from github.Commit import Commit
from github.Issue import Issue
from github.PullRequest import PullRequest
from github.Repository import Repository

from resolver.config.templates import render
from resolver.github.client.access import GitHubAccess
from resolver.github.client.listing import Listing
from resolver.github.comments import find_or_create
from resolver.github.comments.markers import check_marker, is_of_check, is_of_run, run_of_marker
from resolver.github.context.read_task import author_login

_SEARCHED = 300
"""The newest open issues, and pull requests."""

_COMMITS = 100
"""The newest of a branch whose checks are counted."""

_THREADS = 10
"""On which attempts are counted, and closed issues that are read: the newest."""


@dataclass(frozen=True)
class CheckPlaces:
    """Those of one repository. own: our login. All methods raise ForgeError."""

    access: GitHubAccess
    repository: Repository
    own: str

    def tip(self, branch: str) -> str:
        """The newest commit of the branch, "" when there is no such branch."""
        with self.access.asking(f"look at {branch} of {self._name}", "contents: read"):
            return find_or_create.branch_tips(self.repository, branch).get(branch, "")

    def pull_of(self, branch: str) -> int | None:
        """Number of the pull request that we have opened from this branch, while it is open."""
        with self.access.asking(f"look at {branch} of {self._name}", "pull-requests: read"):
            pull = find_or_create.open_pull_request_of(self.repository, branch)
            return pull.number if pull and find_or_create.is_own_account(pull, self.own) else None

    def issues(self, closed_since: datetime | None = None) -> dict[int, str]:
        """Our open issues about checks, newest first: number and text. closed_since: the closed
        ones instead, at which anything was done since then."""
        with self.access.asking(f"list the issues of {self._name}", "issues: read"):
            url = f"{self.repository.url}/issues"
            issues = Listing(
                self.repository.requester,
                Issue,
                url,
                state="closed" if closed_since else "open",
                since=closed_since,
                sort="created",
                direction="desc",
            )
            return {
                issue.number: issue.body or ""
                for issue in islice(issues, _SEARCHED)
                if self._is_own(issue) and is_of_check(issue.body or "")
            }

    def given_up(self, check: str, closed_since: datetime) -> list[int]:
        """Our closed issues about this check that no pull request of ours has fixed."""
        closed = self.issues(closed_since)
        numbers = [n for n, body in closed.items() if is_of_check(body, check)]
        if not numbers:
            return []
        with self.access.asking(f"list the pull requests of {self._name}", "pull-requests: read"):
            query = {"state": "closed", "sort": "updated", "direction": "desc"}
            pulls = find_or_create.pulls_of(self.repository, **query)
            merged = [pull for pull in islice(pulls, _SEARCHED) if pull.merged_at is not None]
        return [n for n in numbers if not any(self._came(pull, n) for pull in merged)]

    def issue_of(self, check: str) -> int | None:
        """Number of our open issue about this check."""
        return next((n for n, body in self.issues().items() if is_of_check(body, check)), None)

    def told_on(self, key: str, closed_since: datetime) -> int | None:
        """Number of our issue about a check on which a run of this key has told anything: of an
        open one, or as `issues` has it."""
        for number in (*self.issues(), *list(self.issues(closed_since))[:_THREADS]):
            with self.access.asking(f"read {self._name}#{number}", "issues: read"):
                bodies = self._own_words(number)
            if any(is_of_run(body, key) for body in bodies):
                return number
        return None

    def open_issue(self, check: str, branch: str, commit: str) -> int:
        """Number of our issue about this check: the open one, else a new one."""
        title, _, words = render(
            "comments/check_issue.md.j2", check=check, branch=branch, commit=commit
        ).partition("\n")
        body = f"{check_marker(check)}\n\n{words.strip()}\n"
        return find_or_create.write_once(
            self.access,
            f"open an issue of {self._name}",
            "issues: write",
            lambda: self.issue_of(check),
            lambda: self.repository.create_issue(title.strip(), body).number,
        )

    def fix_of(self, issue: int) -> int | None:
        """Number of our open pull request that came from this issue."""
        with self.access.asking(f"list the pull requests of {self._name}", "pull-requests: read"):
            query = {"state": "open", "sort": "created", "direction": "desc"}
            pulls = find_or_create.pulls_of(self.repository, **query)
            return next((p.number for p in islice(pulls, _SEARCHED) if self._came(p, issue)), None)

    def attempts(
        self, numbers: Sequence[int], branch: str, key_of: Callable[[str], str], apart_from: str
    ) -> int:
        """How many runs have told on these threads of checks of the branch's newest commits.

        key_of: of a commit. apart_from: the commit whose own run is not counted.
        """
        threads = numbers[:_THREADS]
        with self.access.asking(f"read {self._name}#{threads[0]}", "issues: read"):
            url = f"{self.repository.url}/commits"
            commits = Listing(self.repository.requester, Commit, url, sha=branch)
            keys = {key_of(c.sha) for c in islice(commits, _COMMITS) if c.sha != apart_from}
            bodies = [body for number in threads for body in self._own_words(number)]
        return sum(_is_of_any(body, keys) for body in bodies)

    def _own_words(self, number: int) -> list[str]:
        issue = self.repository.get_issue(number)
        return [c.body or "" for c in find_or_create.own_comments(issue, self.own, None)]

    def _came(self, pull: PullRequest, issue: int) -> bool:
        work = (
            run_of_marker(pull.body or "")
            if find_or_create.is_own_account(pull, self.own)
            else None
        )
        return work is not None and work[0] == issue

    def _is_own(self, issue: Issue) -> bool:
        return author_login(issue).casefold() == self.own.casefold()

    @property
    def _name(self) -> str:
        return self.repository.full_name


def _is_of_any(body: str, keys: Collection[str]) -> bool:
    return any(is_of_run(body, key) for key in keys)
