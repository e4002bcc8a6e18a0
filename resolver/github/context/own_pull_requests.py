"""Reads what became of Resolver's own pull requests: their state, reviews, commits and labels.

A list of the pull requests takes one request for a hundred of them, and their details one query for
twenty-five. A pull request is Resolver's own if its account opened it from a branch of this
repository with Resolver's prefix, and if its text begins with Resolver's marker or the quota ledger
names it. The marker alone is no proof, since anybody can write it.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from github.Repository import Repository
from pydantic import AwareDatetime, Field

from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.answers import (
    ApiAnswer,
    AuthorAccount,
    CommitOid,
    Nodes,
    RepositoryName,
)
from resolver.github.client.resources import PAGE_SIZE, query_repository, read_pages
from resolver.github.comments.markers import has_run_marker, parse_pull_request_marker
from resolver.github.events.payloads import Label, User
from resolver.github.events.quota_ledger import MAX_LABELS_KEPT, normalize_label
from resolver.models.outcome import (
    PullRequestActivity,
    PullRequestFacts,
    RecordedWork,
    Replacement,
)

MAX_OWN_PULLS = 1000
"""Maximum number of Resolver's pull requests that are listed, newest first."""

PULLS_PER_QUERY = 25
"""Number of pull requests whose details are read with one query."""

_TRAILER = re.compile(r"^Resolver-Run: \S", re.MULTILINE)
_STATES: Mapping[str, Literal["open", "closed", "merged"]] = {
    "OPEN": "open",
    "CLOSED": "closed",
    "MERGED": "merged",
}

_PULL_FIELDS = """
  number state createdAt closedAt mergedAt
  author { __typename login }
  headRefName headRefOid baseRefName
  headRepository { nameWithOwner }
  mergeCommit { oid }
  labels(first: 10) { nodes { name } }
  reviews(last: 50) { nodes { state submittedAt author { __typename login } } }
  comments(last: 50) { nodes { createdAt author { __typename login } } }
  commits(last: 100) {
    totalCount
    nodes { commit {
      oid message committedDate
      author { name email }
      committer { name }
    } }
  }
  closingIssuesReferences(first: 5) {
    nodes { number repository { nameWithOwner } labels(first: 10) { nodes { name } } }
  }
"""

_CLOSER_FIELDS = """
  closedByPullRequestsReferences(first: 20, includeClosedPrs: true) {
    nodes { number mergedAt author { __typename login } repository { nameWithOwner } }
  }
"""


@dataclass(frozen=True)
class ListedPullRequest:
    """A pull request by Resolver's account, as lists show it.

    has_marker: True if its text begins with Resolver's marker. issue: the issue that the marker
    names, if any.
    """

    number: int
    title: str
    url: str
    created_at: datetime
    state: Literal["open", "closed", "merged"]
    has_marker: bool
    issue: int | None


class _ListedMerge(ApiAnswer):
    merged_at: AwareDatetime | None = None


class _ListedRow(ApiAnswer):
    number: int
    state: str
    title: str
    html_url: str
    created_at: AwareDatetime
    body: str | None = None
    user: User | None = None
    pull_request: _ListedMerge | None = None


class _Name(ApiAnswer):
    name: str | None = None
    email: str | None = None


class _SubmittedReview(ApiAnswer):
    state: str
    at: AwareDatetime | None = Field(alias="submittedAt", default=None)
    author: AuthorAccount | None = None


class _WrittenComment(ApiAnswer):
    at: AwareDatetime = Field(alias="createdAt")
    author: AuthorAccount | None = None


class _PulledCommit(ApiAnswer):
    oid: str
    message: str
    at: AwareDatetime = Field(alias="committedDate")
    author: _Name | None = None
    committer: _Name | None = None


class _CommitNode(ApiAnswer):
    commit: _PulledCommit


class _Commits(ApiAnswer):
    count: int = Field(alias="totalCount", default=0)
    nodes: Nodes[_CommitNode] = ()


class _ClosingIssue(ApiAnswer):
    number: int
    repository: RepositoryName
    labels: Nodes[Label] = ()


class _PullDetails(ApiAnswer):
    number: int
    state: str
    created_at: AwareDatetime = Field(alias="createdAt")
    closed_at: AwareDatetime | None = Field(alias="closedAt", default=None)
    merged_at: AwareDatetime | None = Field(alias="mergedAt", default=None)
    author: AuthorAccount | None = None
    branch: str = Field(alias="headRefName")
    head: str = Field(alias="headRefOid")
    base_branch: str = Field(alias="baseRefName")
    source: RepositoryName | None = Field(alias="headRepository", default=None)
    merge_commit: CommitOid | None = Field(alias="mergeCommit", default=None)
    labels: Nodes[Label] = ()
    reviews: Nodes[_SubmittedReview] = ()
    comments: Nodes[_WrittenComment] = ()
    commits: _Commits = _Commits()
    closing: Nodes[_ClosingIssue] = Field(alias="closingIssuesReferences", default=())


class _MergedCloser(ApiAnswer):
    number: int
    merged_at: AwareDatetime | None = Field(alias="mergedAt", default=None)
    author: AuthorAccount | None = None
    repository: RepositoryName


class _ClosedIssue(ApiAnswer):
    closers: Nodes[_MergedCloser] = Field(alias="closedByPullRequestsReferences", default=())


@dataclass(frozen=True)
class OwnPullRequests:
    """Reads Resolver's pull requests of one repository. own_login: the account's login.

    prefix: of the names of Resolver's branches. Methods raise ForgeError.
    """

    access: GitHubAccess
    repository: Repository
    own_login: str
    prefix: str

    def listed(self, since: datetime) -> list[ListedPullRequest]:
        """Return the pull requests by Resolver's account that were created since then, newest
        first."""
        pulls: list[ListedPullRequest] = []
        with self._asking("list Resolver's pull requests"):
            for page in self._pages(since):
                rows, _ = read_rows(_ListedRow, page)
                pulls += [
                    ListedPullRequest(
                        number=row.number,
                        title=row.title,
                        url=row.html_url,
                        created_at=row.created_at,
                        state=_listed_state(row),
                        has_marker=has_run_marker(row.body or ""),
                        issue=(parse_pull_request_marker(row.body or "") or (None, ""))[0],
                    )
                    for row in rows
                    if row.pull_request is not None
                    and row.user is not None
                    and row.user.login.casefold() == self.own_login.casefold()
                    and row.created_at >= since
                ]
                if rows and rows[-1].created_at < since:
                    break
        return pulls

    def _pages(self, since: datetime) -> Iterator[Any]:
        query = {
            "creator": self.own_login,
            "state": "all",
            "sort": "created",
            "direction": "desc",
            # The time of the last update, which is never before the creation.
            "since": since,
        }
        url, max_pages = f"{self.repository.url}/issues", MAX_OWN_PULLS // PAGE_SIZE
        return read_pages(self.repository.requester, url, query, max_pages)

    def facts(
        self, pulls: Sequence[ListedPullRequest], work: Mapping[int, RecordedWork]
    ) -> Iterator[PullRequestFacts]:
        """Yield the facts of those of the pull requests that are Resolver's own.

        work: what is recorded of them, by number.
        """
        for start in range(0, len(pulls), PULLS_PER_QUERY):
            batch = pulls[start : start + PULLS_PER_QUERY]
            nodes = self._query("pullRequest", [pull.number for pull in batch], _PULL_FIELDS)
            for pull in batch:
                details = self._parse(nodes.get(pull.number))
                if details is not None and self._is_own(details):
                    yield self._facts(pull, details, work.get(pull.number, RecordedWork()))

    def replacements(self, issues: Collection[int]) -> dict[int, tuple[Replacement, ...]]:
        """Return the merged pull requests of this repository that close each of the issues."""
        numbers = sorted(issues)
        found: dict[int, tuple[Replacement, ...]] = {}
        for start in range(0, len(numbers), PULLS_PER_QUERY):
            batch = numbers[start : start + PULLS_PER_QUERY]
            for number, node in self._query("issue", batch, _CLOSER_FIELDS).items():
                found[number] = tuple(
                    Replacement(
                        closer.number, self._is_own_account(closer.author), closer.merged_at
                    )
                    for closer in _ClosedIssue.model_validate(node).closers
                    if closer.merged_at is not None and self._is_here(closer.repository)
                )
        return found

    def _query(self, field: str, numbers: Sequence[int], selection: str) -> dict[int, Any]:
        """Return the selected fields of issues or pull requests, by number. Missing ones are left
        out."""
        if not numbers:
            return {}
        parts = "\n".join(f"n{n}: {field}(number: {n}) {{{selection}}}" for n in numbers)
        query = (
            "query($owner: String!, $name: String!) {\n"
            f"repository(owner: $owner, name: $name) {{\n{parts}\n}} }}"
        )
        aliases = [f"n{number}" for number in numbers]
        with self._asking("read Resolver's pull requests"):
            repository = query_repository(self.access, self.repository.full_name, query, aliases)
        nodes = {number: repository.get(f"n{number}") for number in numbers}
        return {number: node for number, node in nodes.items() if node is not None}

    def _parse(self, node: Any) -> _PullDetails | None:
        with self._asking("read Resolver's pull requests"):
            return _PullDetails.model_validate(node) if node is not None else None

    def _facts(
        self, pull: ListedPullRequest, details: _PullDetails, work: RecordedWork
    ) -> PullRequestFacts:
        commits = [node.commit for node in details.commits.nodes]
        closing = [issue for issue in details.closing if self._is_here(issue.repository)]
        labels = [details.labels, *(issue.labels for issue in closing)]
        names = (normalize_label(label.name) for group in labels for label in group)
        issue = pull.issue or (closing[0].number if closing else None)
        return PullRequestFacts(
            number=pull.number,
            title=pull.title,
            url=pull.url,
            issue=issue,
            state=_STATES.get(details.state, "open"),
            created_at=details.created_at,
            ended_at=details.merged_at or details.closed_at,
            base_branch=details.base_branch,
            head=details.head,
            own_head=work.head or self._own_head(commits),
            merge_commit=details.merge_commit.oid if details.merge_commit else "",
            commit_count=details.commits.count,
            head_message=commits[-1].message if commits else "",
            activities=tuple(self._activities(details, commits)),
            labels=tuple(dict.fromkeys(filter(None, names)))[:MAX_LABELS_KEPT],
            work=work,
        )

    def _activities(
        self, details: _PullDetails, commits: Sequence[_PulledCommit]
    ) -> Iterator[PullRequestActivity]:
        for review in details.reviews:
            if review.at is not None:
                yield PullRequestActivity(review.at, "review", self._is_person(review.author))
        for comment in details.comments:
            yield PullRequestActivity(comment.at, "comment", self._is_person(comment.author))
        for commit in commits:
            yield PullRequestActivity(commit.at, "commit", self._is_commit_by_person(commit))

    def _own_head(self, commits: Sequence[_PulledCommit]) -> str:
        """Return the newest commit that Resolver made, "" if there is none.

        A person who amends it becomes its committer. GitHub commits what it signs itself.
        """
        committers = {self._login, "github"}
        return next(
            (
                commit.oid
                for commit in reversed(commits)
                if _TRAILER.search(commit.message)
                and _plain_login(commit.author) == self._login
                and _plain_login(commit.committer) in committers
            ),
            "",
        )

    def _is_own(self, details: _PullDetails) -> bool:
        return (
            self._is_own_account(details.author)
            and details.branch.startswith(self.prefix)
            and details.source is not None
            and self._is_here(details.source)
        )

    @property
    def _login(self) -> str:
        """The own login as GraphQL shows it: that of a bot has no suffix there."""
        return self.own_login.casefold().removesuffix("[bot]")

    def _is_own_account(self, account: AuthorAccount | None) -> bool:
        if account is None:
            return False
        is_bot = self.own_login.casefold().endswith("[bot]")
        return (
            account.login.casefold().removesuffix("[bot]") == self._login
            and (account.kind == "Bot") == is_bot
        )

    def _is_person(self, account: AuthorAccount | None) -> bool:
        """Return True for a person, also one whose account was deleted."""
        if account is None:
            return True
        return account.kind == "User" and not self._is_own_account(account)

    def _is_commit_by_person(self, commit: _PulledCommit) -> bool:
        author = commit.author or _Name()
        is_bot = "[bot]" in f"{author.name} {author.email}"
        return not is_bot and _plain_login(author) != self._login

    def _is_here(self, repository: RepositoryName) -> bool:
        return repository.is_same(self.repository.full_name)

    def _asking(self, operation: str) -> Any:
        name = self.repository.full_name
        return self.access.wrap_errors(f"{operation} in {name}", "pull-requests: read")


def _listed_state(row: _ListedRow) -> Literal["open", "closed", "merged"]:
    if row.pull_request is not None and row.pull_request.merged_at is not None:
        return "merged"
    return "open" if row.state == "open" else "closed"


def _plain_login(person: _Name | None) -> str:
    return ((person.name if person else "") or "").casefold().removesuffix("[bot]")
