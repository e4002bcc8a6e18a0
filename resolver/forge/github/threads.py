"""What people have said on a pull request's code: review threads, reviews, and the issues that it
closes. Only the GraphQL API knows which threads are resolved.

Source: https://docs.github.com/en/graphql/reference/objects#pullrequestreviewthread
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from github.Repository import Repository
from pydantic import BaseModel, ConfigDict, Field

from resolver.forge.github.access import GitHubAccess
from resolver.forge.github.graphql import ask
from resolver.pull import Side

PAGE = 50
MOST_PAGES = 10
"""Of threads, and of reviews; what is beyond them is said to be left out."""

_WORDS = """
  fullDatabaseId author { __typename login } authorAssociation body createdAt lastEditedAt url
"""
_ON_LINE = f"{_WORDS} publishedAt state pullRequestReview {{ fullDatabaseId }}"
_THREADS = f"""
query($owner: String!, $name: String!, $number: Int!, $after: String) {{
  repository(owner: $owner, name: $name) {{ pullRequest(number: $number) {{
    reviewThreads(first: {PAGE}, after: $after) {{
      pageInfo {{ hasNextPage endCursor }}
      nodes {{
        id isResolved isOutdated path line startLine originalLine diffSide
        begin: comments(first: 1) {{ nodes {{ {_ON_LINE} diffHunk }} }}
        comments(last: {PAGE}) {{ totalCount nodes {{ {_ON_LINE} }} }}
      }}
    }}
  }} }}
}}
"""
_REVIEWS = f"""
query($owner: String!, $name: String!, $number: Int!, $after: String) {{
  repository(owner: $owner, name: $name) {{ pullRequest(number: $number) {{
    reviews(first: {PAGE}, after: $after) {{
      pageInfo {{ hasNextPage endCursor }}
      nodes {{ {_WORDS} submittedAt state commit {{ oid }} }}
    }}
  }} }}
}}
"""
_CLOSES = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    closingIssuesReferences(first: 10) {
      nodes {
        number title body createdAt lastEditedAt repository { nameWithOwner }
        author { __typename login } authorAssociation
      }
    }
  } }
}
"""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Account(_Answer):
    """Who wrote something."""

    kind: str = Field(alias="__typename", default="User")
    login: str

    @property
    def name(self) -> str:
        """The login as the REST API has it: this one leaves out what marks a bot."""
        is_bot = self.kind == "Bot" and not self.login.endswith("[bot]")
        return f"{self.login}[bot]" if is_bot else self.login


class Said(_Answer):
    """A comment or a review, as the API has it, not yet cleaned."""

    # `databaseId` has no room for the ids that are given today
    number: int | None = Field(alias="fullDatabaseId", default=None)
    account: Account | None = Field(alias="author", default=None)
    association: str = Field(alias="authorAssociation", default="NONE")
    body: str = ""
    created_at: datetime = Field(alias="createdAt")
    edited_at: datetime | None = Field(alias="lastEditedAt", default=None)
    url: str = ""

    @property
    def id(self) -> int:
        """Its number; 0 when the API gives none."""
        return self.number or 0

    @property
    def author(self) -> str:
        """The login as the REST API has it; "ghost" for a deleted account."""
        return self.account.name if self.account else "ghost"


class _ReviewId(_Answer):
    id: int | None = Field(alias="fullDatabaseId", default=None)


class SaidOnLine(Said):
    """A comment of a thread. A draft's words are public from `published_at` on."""

    published_at: datetime | None = Field(alias="publishedAt", default=None)
    state: str = "SUBMITTED"
    hunk: str = Field(alias="diffHunk", default="")
    review: _ReviewId | None = Field(alias="pullRequestReview", default=None)

    @property
    def at(self) -> datetime:
        """When others could see it."""
        return self.published_at or self.created_at


class _Commit(_Answer):
    oid: str


class SaidInReview(Said):
    """A review. `submitted_at` is None while only its author sees it."""

    submitted_at: datetime | None = Field(alias="submittedAt", default=None)
    state: str
    commit: _Commit | None = None


class _Comments(_Answer):
    total: int = Field(alias="totalCount")
    nodes: list[SaidOnLine]


class _Begin(_Answer):
    nodes: list[SaidOnLine]


class Thread(_Answer):
    """A thread as the API has it: its first comment, and its newest ones."""

    id: str
    is_resolved: bool = Field(alias="isResolved")
    is_outdated: bool = Field(alias="isOutdated")
    path: str
    line: int | None = None
    start_line: int | None = Field(alias="startLine", default=None)
    original_line: int | None = Field(alias="originalLine", default=None)
    side: Side = Field(alias="diffSide", default="RIGHT")
    begin: _Begin
    comments: _Comments

    @property
    def said(self) -> list[SaidOnLine]:
        """Oldest first. Of a very long one those in the middle are missing."""
        known = {each.id for each in self.begin.nodes}
        return [*self.begin.nodes, *(x for x in self.comments.nodes if x.id not in known)]

    @property
    def is_cut(self) -> bool:
        """Whether some are missing."""
        return self.comments.total > len(self.said)


class _Owner(_Answer):
    name: str = Field(alias="nameWithOwner")


class ClosedIssue(_Answer):
    """An issue that is closed by the merge."""

    number: int
    title: str
    body: str = ""
    created_at: datetime = Field(alias="createdAt")
    edited_at: datetime | None = Field(alias="lastEditedAt", default=None)
    account: Account | None = Field(alias="author", default=None)
    association: str = Field(alias="authorAssociation", default="NONE")
    repository: _Owner


class Conversation:
    """Asks for it, page by page. Raises what `GitHubAccess.asking` turns into a ForgeError.

    `is_cut` is True once there was more than is read, or may be read.
    """

    def __init__(self, access: GitHubAccess, repository: Repository, number: int) -> None:
        self._access = access
        self._repository = repository
        self._number = number
        self.is_cut = False

    def threads(self) -> Iterator[Thread]:
        """All review threads, oldest first."""
        for node in self._pages(_THREADS, "reviewThreads"):
            thread = Thread.model_validate(node)
            self.is_cut |= thread.is_cut
            yield thread

    def reviews(self) -> Iterator[SaidInReview]:
        """All reviews that are public, oldest first."""
        for node in self._pages(_REVIEWS, "reviews"):
            review = SaidInReview.model_validate(node)
            if review.submitted_at is not None:
                yield review

    def closes(self) -> list[ClosedIssue]:
        """The issues of the same repository that are closed by the merge."""
        nodes = self._asked(_CLOSES, None)["closingIssuesReferences"]["nodes"]
        issues = [ClosedIssue.model_validate(node) for node in nodes if node]
        own = self._repository.full_name.casefold()
        return [issue for issue in issues if issue.repository.name.casefold() == own]

    def _pages(self, query: str, name: str) -> Iterator[dict[str, Any]]:
        after: str | None = None
        for _ in range(MOST_PAGES):
            page = self._asked(query, after)[name]
            self.is_cut |= None in page["nodes"]
            yield from (node for node in page["nodes"] if node)
            if not page["pageInfo"]["hasNextPage"]:
                return
            after = page["pageInfo"]["endCursor"]
        self.is_cut = True

    def _asked(self, query: str, after: str | None) -> dict[str, Any]:
        owner, _, name = self._repository.full_name.partition("/")
        variables: dict[str, Any] = {"owner": owner, "name": name, "number": self._number}
        if after is not None:
            variables["after"] = after
        data = ask(self._access, query, variables)
        found: dict[str, Any] = data["repository"]["pullRequest"]
        return found
