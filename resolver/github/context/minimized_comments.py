"""Finds the comments that maintainers have hidden as unwanted. Only the GraphQL API knows them.

Source: https://docs.github.com/en/graphql/reference/interfaces#minimizable
"""

from collections.abc import Sequence

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.graphql import query_graphql

PAGE = 100
"""Number of comments per request."""

_REASONS = frozenset({"spam", "abuse", "off-topic"})

_QUERY = """
query($ids: [ID!]!) {
  nodes(ids: $ids) { ... on IssueComment { isMinimized minimizedReason } }
}
"""


def is_unwanted(minimized: bool, reason: str | None) -> bool:
    """Return True if a comment is hidden as spam, abuse or off-topic.

    Comments hidden as outdated, resolved or duplicate are read.
    """
    return minimized and (reason or "").casefold().replace("_", "-") in _REASONS


def minimized_comments(
    access: GitHubAccess, ids: Sequence[str], left_out: list[str]
) -> frozenset[str]:
    """Return the node ids of those of an issue's comments that are unwanted.

    If the request fails, the result is empty and `left_out` says so.
    """
    found: set[str] = set()
    try:
        with access.asking("read which comments are hidden", "issues: read"):
            for start in range(0, len(ids), PAGE):
                asked = ids[start : start + PAGE]
                nodes = query_graphql(access, _QUERY, {"ids": asked})["nodes"]
                # The nodes are in the order of the ids. Their own ids can't be compared, because
                # GitHub may return them in a newer format.
                found.update(
                    id
                    for id, node in zip(asked, nodes, strict=True)
                    if node and is_unwanted(node["isMinimized"], node["minimizedReason"])
                )
    except ForgeError as error:
        left_out.append(error.what)
    return frozenset(found)


def describe_minimized(many: int) -> str:
    """Return a text for a person that says how many comments are left out."""
    return f"{many} comment{'' if many == 1 else 's'} hidden as spam, abuse or off-topic"
