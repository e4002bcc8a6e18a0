"""Tests of the list of merged pull requests that closed an issue."""

from typing import Any

from resolver.github.context.merged_fixes import MERGED_PULLS_QUERY, parse_merged_fixes
from tests.parts.github_server.graphql_schema import query_problems
from tests.parts.published import GRAPHQL_SCHEMA, require


def pull(number: int, *issues: tuple[int, str], commit: str | None = "a" * 40) -> dict[str, Any]:
    return {
        "number": number,
        "createdAt": "2026-01-02T03:04:05Z",
        "mergeCommit": {"oid": commit} if commit else None,
        "closingIssuesReferences": {
            "nodes": [{"number": n, "repository": {"nameWithOwner": name}} for n, name in issues]
        },
    }


def test_a_fix_is_a_merged_pull_request_that_closed_an_issue_of_its_repository() -> None:
    nodes = [
        pull(9, (3, "Ada/sums"), (4, "ada/sums")),
        pull(8),
        pull(7, (1, "ada/other")),
        pull(6, (2, "ada/sums"), commit=None),
        None,
    ]
    (fix,) = parse_merged_fixes(nodes, "ada/sums")
    assert (fix.number, fix.issue, fix.merge_commit) == (9, 3, "a" * 40)
    assert fix.created_at.year == 2026


def test_the_query_is_valid_by_githubs_schema() -> None:
    assert query_problems(require(GRAPHQL_SCHEMA), MERGED_PULLS_QUERY) == ()
