"""Comments that maintainers have hidden because nobody is to read them. Only the GraphQL API knows.

Source: https://docs.github.com/en/graphql/reference/interfaces#minimizable
"""

from collections.abc import Sequence

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.graphql import query_graphql

PAGE = 100
"""Comments that are asked about at a time."""

_REASONS = frozenset({"spam", "abuse", "off-topic"})

_QUERY = """
query($ids: [ID!]!) {
  nodes(ids: $ids) { ... on IssueComment { isMinimized minimizedReason } }
}
"""


def is_unwanted(minimized: bool, reason: str | None) -> bool:
    """Whether it is hidden for what it is. What is outdated, resolved or said twice is read."""
    return minimized and (reason or "").casefold().replace("_", "-") in _REASONS


def minimized_comments(
    access: GitHubAccess, ids: Sequence[str], left_out: list[str]
) -> frozenset[str]:
    """Those of an issue's comments, by their node ids. Where it can't be asked none is, and
    `left_out` says so."""
    found: set[str] = set()
    try:
        with access.asking("read which comments are hidden", "issues: read"):
            for start in range(0, len(ids), PAGE):
                asked = ids[start : start + PAGE]
                nodes = query_graphql(access, _QUERY, {"ids": asked})["nodes"]
                # in the order of the ids, whose form may be another one by now
                found.update(
                    id
                    for id, node in zip(asked, nodes, strict=True)
                    if node and is_unwanted(node["isMinimized"], node["minimizedReason"])
                )
    except ForgeError as error:
        left_out.append(error.what)
    return frozenset(found)


def describe_minimized(many: int) -> str:
    """That so many are left out, for a person."""
    return f"{many} comment{'' if many == 1 else 's'} hidden as spam, abuse or off-topic"
