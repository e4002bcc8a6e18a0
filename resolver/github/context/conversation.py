"""Reads an issue or a pull request with all that was said about it, in one GraphQL query.

Long lists take one more query for each further page, the newest first. The REST API would take a
request for each list, and does not tell which comments maintainers have hidden, which review
threads are resolved, and when a text was last edited.

Source: https://docs.github.com/en/graphql/reference/interfaces#comment,
https://docs.github.com/en/graphql/reference/objects#pullrequestreviewthread,
https://docs.github.com/en/graphql/reference/interfaces#lockable
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import AliasPath, Field

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.accounts import VIEWER_FIELDS, Viewer
from resolver.github.client.answers import (
    ApiAnswer,
    AuthorAccount,
    AuthoredAnswer,
    Nodes,
    RepositoryName,
    TitleChange,
)
from resolver.github.client.resources import query_graphql
from resolver.github.events.payloads import Label
from resolver.models.pull_request import Side

MAX_PAGES = 20
"""Maximum number of pages of one list. Of a longer one, the oldest items are not read."""

COMMENTS_PER_THREAD = 50
"""Number of the newest comments of a thread that are read, in addition to its first one."""

_TEXT = """
  author { __typename login } authorAssociation body createdAt lastEditedAt
"""
_REMARK = f"""
  fullDatabaseId url isMinimized minimizedReason {_TEXT}
"""
_THREAD_COMMENT = f"{_REMARK} publishedAt state pullRequestReview {{ fullDatabaseId }}"
_PAGE = "totalCount pageInfo { hasPreviousPage startCursor }"
_LISTS = {
    "comments": f"""
      comments(last: 100, before: $before) {{ {_PAGE} nodes {{ {_REMARK} }} }}
    """,
    "reviewThreads": f"""
      reviewThreads(last: 50, before: $before) {{ {_PAGE} nodes {{
        id isResolved isOutdated path line startLine originalLine diffSide
        begin: comments(first: 1) {{ nodes {{ {_THREAD_COMMENT} diffHunk }} }}
        comments(last: {COMMENTS_PER_THREAD}) {{ totalCount nodes {{ {_THREAD_COMMENT} }} }}
      }} }}
    """,
    "reviews": f"""
      reviews(last: 50, before: $before) {{ {_PAGE} nodes {{
        {_REMARK} submittedAt state commit {{ oid }}
      }} }}
    """,
}
RELATED_ISSUE = f"""
  __typename {_TEXT} title closedAt
  renamed: timelineItems(itemTypes: RENAMED_TITLE_EVENT, since: $at, first: 1) {{
    nodes {{ ... on RenamedTitleEvent {{ previousTitle }} }}
  }}
"""
"""The fields of a `RelatedIssue` that issues and pull requests have. $at: time of the request."""

_SUBJECT = f"""
  {_TEXT} number title url closed locked
  locks: timelineItems(itemTypes: LOCKED_EVENT, since: $at, first: 1) {{
    nodes {{ ... on LockedEvent {{ createdAt }} }}
  }}
  labels(first: 100) {{ nodes {{ name }} }}
  milestone {{ title }}
  assignees(first: 100) {{ nodes {{ login }} }}
  renamed: timelineItems(itemTypes: RENAMED_TITLE_EVENT, since: $at, first: 1) {{
    nodes {{ ... on RenamedTitleEvent {{ previousTitle }} }}
  }}
  {_LISTS["comments"]}
"""
_CONVERSATION = f"""
query($owner: String!, $name: String!, $number: Int!, $at: DateTime!, $before: String) {{
  viewer {{ {VIEWER_FIELDS} }}
  repository(owner: $owner, name: $name) {{
    nameWithOwner
    defaultBranchRef {{ name }}
    subject: issueOrPullRequest(number: $number) {{
      __typename
      ... on Issue {{
        {_SUBJECT}
        closers: closedByPullRequestsReferences(first: 10, includeClosedPrs: true) {{
          nodes {{ number repository {{ nameWithOwner }} }}
        }}
      }}
      ... on PullRequest {{
        {_SUBJECT} {_LISTS["reviewThreads"]} {_LISTS["reviews"]}
        closingIssuesReferences(first: 10) {{ nodes {{
          {RELATED_ISSUE} number repository {{ nameWithOwner }}
        }} }}
      }}
    }}
  }}
}}
"""
_OPTIONAL_FIELDS = ("viewer", "closers")


def _page_query(connection: str) -> str:
    """Return the query for a further page of one list."""
    on_issue = f"... on Issue {{ {_LISTS[connection]} }}" if connection == "comments" else ""
    return f"""
query($owner: String!, $name: String!, $number: Int!, $before: String) {{
  repository(owner: $owner, name: $name) {{
    subject: issueOrPullRequest(number: $number) {{
      {on_issue} ... on PullRequest {{ {_LISTS[connection]} }}
    }}
  }}
}}
"""


class RemarkText(AuthoredAnswer):
    """A comment or review as the API returns it, not yet cleaned."""

    # `databaseId` is a 32-bit integer, which is too small for current ids.
    number: int | None = Field(alias="fullDatabaseId", default=None)
    url: str = ""
    is_minimized: bool = Field(alias="isMinimized", default=False)
    why_minimized: str | None = Field(alias="minimizedReason", default=None)

    @property
    def id(self) -> int:
        """The database id, 0 if the API returns none."""
        return self.number or 0


class ThreadComment(RemarkText):
    """A comment of a review thread. In a draft review, it is visible from `published_at` on."""

    published_at: datetime | None = Field(alias="publishedAt", default=None)
    state: str = "SUBMITTED"
    hunk: str = Field(alias="diffHunk", default="")
    review: int | None = Field(
        validation_alias=AliasPath("pullRequestReview", "fullDatabaseId"), default=None
    )

    @property
    def at(self) -> datetime:
        """When the comment became visible to others."""
        return self.published_at or self.created_at


class ReviewText(RemarkText):
    """A review. `submitted_at` is None as long as only its author sees it."""

    submitted_at: datetime | None = Field(alias="submittedAt", default=None)
    state: str
    commit: str | None = Field(validation_alias=AliasPath("commit", "oid"), default=None)


class _ThreadComments(ApiAnswer):
    total: int = Field(alias="totalCount")
    nodes: list[ThreadComment]


class Thread(ApiAnswer):
    """A review thread as the API returns it, with its first comment and its newest ones."""

    id: str
    is_resolved: bool = Field(alias="isResolved")
    is_outdated: bool = Field(alias="isOutdated")
    path: str
    line: int | None = None
    start_line: int | None = Field(alias="startLine", default=None)
    original_line: int | None = Field(alias="originalLine", default=None)
    side: Side = Field(alias="diffSide", default="RIGHT")
    begin: Nodes[ThreadComment]
    comments: _ThreadComments

    @cached_property
    def shown_comments(self) -> list[ThreadComment]:
        """The comments, oldest first. Those in the middle of a very long thread are missing."""
        first_ids = {comment.id for comment in self.begin}
        newest = (comment for comment in self.comments.nodes if comment.id not in first_ids)
        return [*self.begin, *newest]

    @property
    def is_cut(self) -> bool:
        """True if comments are missing."""
        return self.comments.total > len(self.shown_comments)


class RelatedIssue(AuthoredAnswer):
    """An issue or pull request that another one is related to. `renamed` has the first title since
    the request."""

    kind: str = Field(alias="__typename")
    title: str
    closed_at: datetime | None = Field(alias="closedAt", default=None)
    merged_at: datetime | None = Field(alias="mergedAt", default=None)
    renamed: Nodes[TitleChange] = ()


class ClosedIssue(RelatedIssue):
    """An issue that merging the pull request closes."""

    number: int
    repository: RepositoryName


class _Closer(ApiAnswer):
    number: int
    repository: RepositoryName


class Subject(AuthoredAnswer):
    """The issue or pull request that a conversation is about. `locks` has the first lock since the
    request."""

    kind: str = Field(alias="__typename")
    number: int
    title: str
    url: str
    closed: bool
    locked: bool
    locks: Nodes[object] = ()
    labels: Nodes[Label] = ()
    milestone: str | None = Field(validation_alias=AliasPath("milestone", "title"), default=None)
    assignees: Nodes[AuthorAccount] = ()
    renamed: Nodes[TitleChange] = ()
    closers: Nodes[_Closer] = ()
    closes: Nodes[ClosedIssue] = Field(alias="closingIssuesReferences", default=())

    @property
    def is_pull_request(self) -> bool:
        """True for a pull request, False for an issue."""
        return self.kind == "PullRequest"


_Item = TypeVar("_Item", bound=ApiAnswer)


class _Page(ApiAnswer, Generic[_Item]):
    total: int = Field(alias="totalCount")
    has_previous: bool = Field(validation_alias=AliasPath("pageInfo", "hasPreviousPage"))
    cursor: str | None = Field(validation_alias=AliasPath("pageInfo", "startCursor"), default=None)
    nodes: list[_Item | None]


@dataclass(frozen=True)
class ReadList(Generic[_Item]):
    """The newest items of a list, oldest first. unread: how many were not read or are hidden."""

    items: tuple[_Item, ...] = ()
    unread: int = 0


@dataclass(frozen=True)
class Conversation:
    """An issue or pull request and what was said about it.

    viewer: the account of the token; None if GitHub does not say. repository: its present name,
    OWNER/NAME. default_branch: None if the repository has no commit. Threads and reviews are those
    of a pull request.
    """

    viewer: Viewer | None
    repository: str
    default_branch: str | None
    subject: Subject
    comments: ReadList[RemarkText]
    threads: ReadList[Thread]
    reviews: ReadList[ReviewText]

    @property
    def is_code_cut(self) -> bool:
        """True if something that was said about the code is missing."""
        is_cut = any(thread.is_cut for thread in self.threads.items)
        return is_cut or bool(self.threads.unread or self.reviews.unread)


class SubjectMissing(ForgeError):
    """The token can see the repository, but no issue or pull request of this number in it."""


@dataclass(frozen=True)
class ConversationReader:
    """Reads issue or pull request `number` of the repository OWNER/NAME.

    Its methods raise what `GitHubAccess.wrap_errors` turns into a ForgeError, and SubjectMissing.
    """

    access: GitHubAccess
    repository: str
    number: int

    def read(self, at: datetime) -> Conversation:
        """Return the conversation. `Subject.renamed` and `locks` are what happened after `at`."""
        answer = self._query(_CONVERSATION, {"at": at.isoformat(), "before": None})
        repository = answer["repository"]
        row, branch = repository["subject"], repository["defaultBranchRef"]
        subject = Subject.model_validate(row)
        is_pull = subject.is_pull_request
        viewer = answer.get("viewer")
        return Conversation(
            viewer=Viewer.model_validate(viewer) if viewer else None,
            repository=repository["nameWithOwner"],
            default_branch=branch["name"] if branch else None,
            subject=subject,
            comments=self._list("comments", RemarkText, row),
            threads=self._list("reviewThreads", Thread, row) if is_pull else ReadList(),
            reviews=self._list("reviews", ReviewText, row) if is_pull else ReadList(),
        )

    def _list(self, connection: str, model: type[_Item], row: Mapping[str, Any]) -> ReadList[_Item]:
        """Return the list whose newest page is in `row`."""
        items: list[_Item] = []
        page_model = _Page[model]  # type: ignore[valid-type]
        page: _Page[_Item] = page_model.model_validate(row[connection])
        for page_number in range(MAX_PAGES):
            items = [node for node in page.nodes if node is not None] + items
            if not page.has_previous or page_number == MAX_PAGES - 1:
                break
            answer = self._query(_page_query(connection), {"before": page.cursor})
            page = page_model.model_validate(answer["repository"]["subject"][connection])
        return ReadList(tuple(items), max(0, page.total - len(items)))

    def _query(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        owner, _, name = self.repository.partition("/")
        variables = {"owner": owner, "name": name, "number": self.number, **variables}
        answer = query_graphql(self.access, query, variables, ("subject",), _OPTIONAL_FIELDS)
        if answer["repository"]["subject"] is None:
            raise SubjectMissing(
                f"could not read issue {self.number} of {self.repository}: there is none",
                "check the number; an issue that was deleted or transferred can't be read",
                "not_found",
            )
        return answer
