"""Finds the pull requests that Resolver opened in a repository, with GitHub's search.

A pull request is Resolver's own if its account opened it from a branch of this repository with
Resolver's prefix. Source for the qualifiers of the search:
https://docs.github.com/en/search-github/searching-on-github/searching-issues-and-pull-requests
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, Field

from resolver.github.client.access import GitHubAccess
from resolver.github.client.answers import ApiAnswer, AuthorAccount, Nodes, RepositoryName
from resolver.github.client.resources import query_graphql

MAX_PAGES = 10
"""Maximum number of pages of a search: GitHub returns no more than 1,000 results."""

# Without the repository, a search in one that does not exist, or that the token can't read, would
# just find nothing.
_SEARCH = """query($owner: String!, $name: String!, $query: String!, $cursor: String) {
  repository(owner: $owner, name: $name) { id }
  search(type: ISSUE, query: $query, first: 100, after: $cursor) {
    pageInfo { hasNextPage endCursor }
    nodes { ... on PullRequest {
      number title url state createdAt closedAt
      author { __typename login }
      headRefName
      headRepository { nameWithOwner }
    } }
  }
}"""


_STATES: Mapping[str, Literal["open", "closed", "merged"]] = {
    "OPEN": "open",
    "CLOSED": "closed",
    "MERGED": "merged",
}


@dataclass(frozen=True)
class OwnPullRequest:
    """A pull request that Resolver opened. ended_at: when it was merged or closed; None if it is
    open."""

    number: int
    title: str
    url: str
    state: Literal["open", "closed", "merged"]
    created_at: datetime
    ended_at: datetime | None = None


class _FoundPullRequest(ApiAnswer):
    number: int
    title: str
    url: str
    state: Literal["OPEN", "CLOSED", "MERGED"]
    created_at: AwareDatetime = Field(alias="createdAt")
    closed_at: AwareDatetime | None = Field(alias="closedAt", default=None)
    author: AuthorAccount | None = None
    branch: str = Field(alias="headRefName")
    source: RepositoryName | None = Field(alias="headRepository", default=None)


class _PageInfo(ApiAnswer):
    has_next: bool = Field(alias="hasNextPage")
    cursor: str | None = Field(alias="endCursor", default=None)


class _FoundPage(ApiAnswer):
    info: _PageInfo = Field(alias="pageInfo")
    nodes: Nodes[_FoundPullRequest] = ()


def find_own_pull_requests(
    access: GitHubAccess, repository: str, login: str, prefix: str, since: datetime
) -> list[OwnPullRequest]:
    """Return the pull requests that were opened since then, newest first.

    login: of Resolver's account. prefix: of the names of its branches. Raises ForgeError.
    """
    # Search names the account of an App by its slug, which is its login without the suffix.
    slug = login.removesuffix("[bot]")
    author = slug if slug == login else f"app/{slug}"
    query = f"repo:{repository} is:pr author:{author} head:{prefix} created:>={since:%Y-%m-%d}"
    with access.wrap_errors(
        f"list Resolver's pull requests in {repository}", "pull-requests: read"
    ):
        own = [
            OwnPullRequest(
                found.number,
                found.title,
                found.url,
                _STATES[found.state],
                found.created_at,
                found.closed_at,
            )
            for found in _search(access, repository, query)
            if found.branch.startswith(prefix)
            and found.created_at >= since
            and found.author is not None
            and found.author.name.casefold() == login.casefold()
            and found.source is not None
            and found.source.is_same(repository)
        ]
    return sorted(own, key=lambda pull: pull.number, reverse=True)


def _search(access: GitHubAccess, repository: str, query: str) -> Iterator[_FoundPullRequest]:
    owner, _, name = repository.partition("/")
    variables = {"owner": owner, "name": name, "query": query}
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        answer = query_graphql(access, _SEARCH, {**variables, "cursor": cursor})
        page = _FoundPage.model_validate(answer["search"])
        yield from page.nodes
        cursor = page.info.cursor
        if not page.info.has_next:
            return
