"""Finds the pull requests that Resolver opened in a repository, with GitHub's search.

A pull request is Resolver's own if its account opened it from a branch of this repository with
Resolver's prefix. Source for the qualifiers of the search:
https://docs.github.com/en/search-github/searching-on-github/searching-issues-and-pull-requests
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AliasPath, AwareDatetime, BeforeValidator, Field

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


class OwnPullRequest(ApiAnswer):
    """A pull request that Resolver opened. ended_at: when it was merged or closed; None if it is
    open."""

    number: int
    title: str
    url: str
    state: Annotated[Literal["open", "closed", "merged"], BeforeValidator(str.lower)]
    created_at: AwareDatetime = Field(alias="createdAt")
    ended_at: AwareDatetime | None = Field(alias="closedAt", default=None)
    account: AuthorAccount | None = Field(alias="author", default=None)
    branch: str = Field(alias="headRefName")
    source: RepositoryName | None = Field(alias="headRepository", default=None)


class _FoundPage(ApiAnswer):
    has_next: bool = Field(validation_alias=AliasPath("pageInfo", "hasNextPage"))
    cursor: str | None = Field(validation_alias=AliasPath("pageInfo", "endCursor"), default=None)
    nodes: Nodes[OwnPullRequest] = ()


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
            pull
            for pull in _search(access, repository, query)
            if pull.branch.startswith(prefix)
            and pull.created_at >= since
            and pull.account is not None
            and pull.account.name.casefold() == login.casefold()
            and pull.source is not None
            and pull.source.is_same(repository)
        ]
    return sorted(own, key=lambda pull: pull.number, reverse=True)


def _search(access: GitHubAccess, repository: str, query: str) -> Iterator[OwnPullRequest]:
    owner, _, name = repository.partition("/")
    variables = {"owner": owner, "name": name, "query": query}
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        answer = query_graphql(access, _SEARCH, {**variables, "cursor": cursor})
        page = _FoundPage.model_validate(answer["search"])
        yield from page.nodes
        cursor = page.cursor
        if not page.has_next:
            return
