"""Lists the merged pull requests of a repository that closed an issue."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import AwareDatetime, ConfigDict, Field

from resolver.github.client.access import GitHubAccess
from resolver.github.client.resources import query_graphql
from resolver.models.base import DeferredModel

PAGE_SIZE_MERGED = 50
MAX_MERGED_PULLS = 2000
"""Number of merged pull requests that are looked at."""

MERGED_PULLS_QUERY = """
query($owner: String!, $name: String!, $count: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequests(
      states: MERGED, first: $count, after: $after,
      orderBy: {field: CREATED_AT, direction: DESC}
    ) {
      pageInfo { hasNextPage endCursor }
      nodes {
        number createdAt mergeCommit { oid }
        closingIssuesReferences(first: 5) {
          nodes { number repository { nameWithOwner } }
        }
      }
    }
  }
}
"""


class MergedFix(DeferredModel):
    """A merged pull request. issue: the first issue of its repository that it closed."""

    model_config = ConfigDict(frozen=True)

    number: int
    created_at: AwareDatetime
    merge_commit: str
    issue: int


class _Answer(DeferredModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class _ClosedIssue(_Answer):
    number: int
    repository: dict[str, Any]


class _ClosedIssues(_Answer):
    nodes: tuple[_ClosedIssue | None, ...] = ()


class _MergedPull(_Answer):
    number: int
    created_at: AwareDatetime = Field(alias="createdAt")
    merge_commit: dict[str, Any] | None = Field(default=None, alias="mergeCommit")
    closed: _ClosedIssues = Field(default=_ClosedIssues(), alias="closingIssuesReferences")


def read_merged_fixes(access: GitHubAccess, repository: str) -> Iterator[MergedFix]:
    """Yield the merged pull requests of OWNER/NAME that closed an issue, the newest first.

    Raises ForgeError.
    """
    owner, _, name = repository.partition("/")
    after = None
    for _ in range(MAX_MERGED_PULLS // PAGE_SIZE_MERGED):
        with access.wrap_errors(
            f"list the merged pull requests of {repository}", "pull requests: read"
        ):
            variables = {"owner": owner, "name": name, "count": PAGE_SIZE_MERGED, "after": after}
            data = query_graphql(access, MERGED_PULLS_QUERY, variables)
            page = data["repository"]["pullRequests"]
        yield from parse_merged_fixes(page["nodes"], repository)
        if not page["pageInfo"]["hasNextPage"]:
            return
        after = page["pageInfo"]["endCursor"]


def parse_merged_fixes(nodes: Sequence[Any], repository: str) -> Iterator[MergedFix]:
    """Yield those of the pull requests of a page that closed an issue of OWNER/NAME.

    A null stands for what the token can't see.
    """
    for node in nodes:
        if node is None:
            continue
        pull = _MergedPull.model_validate(node)
        issues = [
            issue.number
            for issue in pull.closed.nodes
            if issue is not None
            and str(issue.repository.get("nameWithOwner")).lower() == repository.lower()
        ]
        if issues and pull.merge_commit:
            yield MergedFix(
                number=pull.number,
                created_at=pull.created_at,
                merge_commit=str(pull.merge_commit.get("oid")),
                issue=issues[0],
            )
