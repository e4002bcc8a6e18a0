"""Lists the merged pull requests of a repository that closed an issue."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, Field

from resolver.github.client.access import GitHubAccess
from resolver.github.client.answers import ApiAnswer, CommitOid, Nodes, RepositoryName
from resolver.github.client.resources import query_repository

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


@dataclass(frozen=True)
class MergedFix:
    """A merged pull request. issue: the first issue of its repository that it closed."""

    number: int
    created_at: datetime
    merge_commit: str
    issue: int


class _ClosedIssue(ApiAnswer):
    number: int
    repository: RepositoryName


class _MergedPull(ApiAnswer):
    number: int
    created_at: AwareDatetime = Field(alias="createdAt")
    merge_commit: CommitOid | None = Field(default=None, alias="mergeCommit")
    closed: Nodes[_ClosedIssue] = Field(default=(), alias="closingIssuesReferences")


def read_merged_fixes(access: GitHubAccess, repository: str) -> Iterator[MergedFix]:
    """Yield the merged pull requests of OWNER/NAME that closed an issue, the newest first.

    Raises ForgeError.
    """
    after = None
    for _ in range(MAX_MERGED_PULLS // PAGE_SIZE_MERGED):
        with access.wrap_errors(
            f"list the merged pull requests of {repository}", "pull requests: read"
        ):
            answer = query_repository(
                access, repository, MERGED_PULLS_QUERY, count=PAGE_SIZE_MERGED, after=after
            )
            page = answer["pullRequests"]
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
        issues = [issue.number for issue in pull.closed if issue.repository.is_same(repository)]
        if issues and pull.merge_commit:
            yield MergedFix(
                number=pull.number,
                created_at=pull.created_at,
                merge_commit=pull.merge_commit.oid,
                issue=issues[0],
            )
