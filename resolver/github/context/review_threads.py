"""Reads the review threads, reviews and linked issues of a pull request from the GraphQL API.

The REST API doesn't tell which threads are resolved.

Source: https://docs.github.com/en/graphql/reference/objects#pullrequestreviewthread
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from github.Repository import Repository
from pydantic import Field

from resolver.github.client.access import GitHubAccess
from resolver.github.client.answers import (
    ApiAnswer,
    AuthoredAnswer,
    CommitOid,
    Nodes,
    RepositoryName,
)
from resolver.github.client.resources import query_repository
from resolver.models.pull_request import Side
from resolver.models.run import Trigger, TriggerKind

COMMENTS_PAGE_SIZE = 50
"""Number of the newest comments of a thread that are read, in addition to its first one."""


@dataclass(frozen=True)
class ThreadBounds:
    """Maximum numbers of threads and reviews that are read. More are reported as left out.

    page_size: number of items on a page.
    oldest_pages: number of pages of the oldest items.
    newest_pages: number of pages of the newest items.
    searched_pages: number of further pages that are searched for items that the request is about.
    """

    page_size: int = 50
    oldest_pages: int = 2
    newest_pages: int = 8
    searched_pages: int = 30


DEFAULT = ThreadBounds()

_SLICE_ARGUMENTS = "first: $first, after: $after, last: $last, before: $before"
_QUERY_VARIABLES = (
    "$owner: String!, $name: String!, $number: Int!, "
    "$first: Int, $after: String, $last: Int, $before: String"
)
_PAGE_INFO = "pageInfo { hasNextPage endCursor hasPreviousPage startCursor } totalCount"

_TEXT_FIELDS = """
  fullDatabaseId author { __typename login } authorAssociation body createdAt lastEditedAt url
  isMinimized minimizedReason
"""
_COMMENT_FIELDS = f"{_TEXT_FIELDS} publishedAt state pullRequestReview {{ fullDatabaseId }}"
_THREADS_QUERY = f"""
query({_QUERY_VARIABLES}) {{
  repository(owner: $owner, name: $name) {{ pullRequest(number: $number) {{
    reviewThreads({_SLICE_ARGUMENTS}) {{
      {_PAGE_INFO}
      nodes {{
        id isResolved isOutdated path line startLine originalLine diffSide
        begin: comments(first: 1) {{ nodes {{ {_COMMENT_FIELDS} diffHunk }} }}
        comments(last: {COMMENTS_PAGE_SIZE}) {{ totalCount nodes {{ {_COMMENT_FIELDS} }} }}
      }}
    }}
  }} }}
}}
"""
_REVIEWS_QUERY = f"""
query({_QUERY_VARIABLES}) {{
  repository(owner: $owner, name: $name) {{ pullRequest(number: $number) {{
    reviews({_SLICE_ARGUMENTS}) {{
      {_PAGE_INFO}
      nodes {{ id {_TEXT_FIELDS} submittedAt state commit {{ oid }} }}
    }}
  }} }}
}}
"""
_CLOSED_ISSUES_QUERY = """
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


class ThreadText(AuthoredAnswer):
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


class _ReviewId(ApiAnswer):
    id: int | None = Field(alias="fullDatabaseId", default=None)


class ThreadComment(ThreadText):
    """A comment of a review thread. In a draft review, it is visible from `published_at` on."""

    published_at: datetime | None = Field(alias="publishedAt", default=None)
    state: str = "SUBMITTED"
    hunk: str = Field(alias="diffHunk", default="")
    review: _ReviewId | None = Field(alias="pullRequestReview", default=None)

    @property
    def at(self) -> datetime:
        """When the comment became visible to others."""
        return self.published_at or self.created_at


class ReviewText(ThreadText):
    """A review. `submitted_at` is None as long as only its author sees it."""

    submitted_at: datetime | None = Field(alias="submittedAt", default=None)
    state: str
    commit: CommitOid | None = None


class _Comments(ApiAnswer):
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
    comments: _Comments

    @property
    def shown_comments(self) -> list[ThreadComment]:
        """The comments, oldest first. Those in the middle of a very long thread are missing."""
        first_ids = {comment.id for comment in self.begin}
        return [
            *self.begin,
            *(comment for comment in self.comments.nodes if comment.id not in first_ids),
        ]

    @property
    def is_cut(self) -> bool:
        """True if comments are missing."""
        return self.comments.total > len(self.shown_comments)


class ClosedIssue(AuthoredAnswer):
    """An issue that merging the pull request closes."""

    number: int
    title: str
    repository: RepositoryName


_Item = TypeVar("_Item", bound=ApiAnswer)


class ConversationReader:
    """Reads the threads, reviews and linked issues of a pull request, page by page.

    The methods raise what `GitHubAccess.wrap_errors` turns into a ForgeError. The attribute
    `is_cut` is True once something was not read, because of a limit or a missing permission.

    trigger: the trigger on this pull request. The review or threads that it is about are read even
    if they are beyond the limit.
    """

    def __init__(
        self,
        access: GitHubAccess,
        repository: Repository,
        trigger: Trigger,
        bounds: ThreadBounds = DEFAULT,
    ) -> None:
        self._access = access
        self._repository = repository
        self._trigger = trigger
        self._bounds = bounds
        self.is_cut = False

    def threads(self) -> list[Thread]:
        """Return the review threads, oldest first."""
        threads = list(
            self._read_both_ends(_THREADS_QUERY, "reviewThreads", Thread, self._contains_request)
        )
        self.is_cut |= any(thread.is_cut for thread in threads)
        return threads

    def reviews(self) -> list[ReviewText]:
        """Return the submitted reviews, oldest first."""
        reviews = self._read_both_ends(
            _REVIEWS_QUERY, "reviews", ReviewText, self._is_request_review
        )
        return [review for review in reviews if review.submitted_at is not None]

    def closes(self) -> list[ClosedIssue]:
        """Return the issues of the same repository that the merge closes."""
        nodes = self._fetch(_CLOSED_ISSUES_QUERY)["closingIssuesReferences"]["nodes"]
        issues = [ClosedIssue.model_validate(node) for node in nodes if node]
        own_name = self._repository.full_name
        return [issue for issue in issues if issue.repository.is_same(own_name)]

    def _read_both_ends(
        self, query: str, connection: str, model: type[_Item], is_requested: Callable[[_Item], bool]
    ) -> list[_Item]:
        """Return the oldest items of a list, the newest, and those that the request is about.

        They are sorted from oldest to newest.
        """
        bounds = self._bounds
        oldest: dict[str, _Item] = {}
        after: dict[str, str] = {}
        for _ in range(bounds.oldest_pages):
            page = self._fetch(query, first=bounds.page_size, **after)[connection]
            oldest |= self._items(page, model)
            if not page["pageInfo"]["hasNextPage"]:
                return list(oldest.values())
            after = {"after": page["pageInfo"]["endCursor"]}
        # Then from the end backwards, until the two ranges meet. Pages beyond `bounds.newest_pages`
        # are read only for the items that the request is about.
        newest: dict[str, _Item] = {}
        before: dict[str, str] = {}
        has_requested = self._trigger.review_id or self._trigger.kind is TriggerKind.REVIEW_COMMENT
        searched_pages = bounds.searched_pages if has_requested else 0
        for page_index in range(bounds.newest_pages + searched_pages):
            page = self._fetch(query, last=bounds.page_size, **before)[connection]
            items = self._items(page, model)
            has_met = not page["pageInfo"]["hasPreviousPage"] or not oldest.keys().isdisjoint(items)
            has_met |= len(oldest) + len(newest) + len(items) >= page["totalCount"]
            if page_index >= bounds.newest_pages:
                self.is_cut |= not all(
                    id in oldest or is_requested(item) for id, item in items.items()
                )
                items = {id: item for id, item in items.items() if is_requested(item)}
            newest = {**items, **newest}
            if has_met:
                return list({**oldest, **newest}.values())
            before = {"before": page["pageInfo"]["startCursor"]}
        self.is_cut = True
        return list({**oldest, **newest}.values())

    def _items(self, page: dict[str, Any], kind: type[_Item]) -> dict[str, _Item]:
        """Return the items of a page by id. Items that the token may not see are null."""
        self.is_cut |= None in page["nodes"]
        return {str(node["id"]): kind.model_validate(node) for node in page["nodes"] if node}

    def _contains_request(self, thread: Thread) -> bool:
        """Return True if the comment or review that made the request is in the thread."""
        trigger = self._trigger
        requested_id = trigger.comment_id if trigger.kind is TriggerKind.REVIEW_COMMENT else None
        return any(
            (requested_id is not None and thread_comment.id == requested_id)
            or (
                trigger.review_id is not None
                and thread_comment.review
                and thread_comment.review.id == trigger.review_id
            )
            for thread_comment in thread.shown_comments
        )

    def _is_request_review(self, review: ReviewText) -> bool:
        return self._trigger.review_id is not None and review.id == self._trigger.review_id

    def _fetch(self, query: str, **variables: Any) -> dict[str, Any]:
        repository, number = self._repository.full_name, self._trigger.subject or 0
        answer = query_repository(self._access, repository, query, number=number, **variables)
        pull_request: dict[str, Any] = answer["pullRequest"]
        return pull_request
