"""Tests of the number of requests for lists: one per page."""

import pytest
from github.IssueComment import IssueComment

from resolver.github.client.resources import Listing
from tests.github.test_github_reading import forge_for, issue
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

__all__ = ["issue"]


@pytest.mark.parametrize(("many", "limit", "pages"), [(0, 5, 1), (100, 5, 1), (301, 150, 4)])
def test_reading_a_list_takes_a_request_per_page_and_none_per_element(
    github: GitHubServer, issue: Issue, many: int, limit: int, pages: int
) -> None:
    words = [f"word {n}" for n in range(many)]
    for word in words:
        github.add_comment(issue, word, "carol")
    repository = forge_for(github)._repository
    comments = Listing(
        repository.requester, IssueComment, f"{repository.url}/issues/{issue.number}/comments"
    )
    found = comments.newest(limit)
    assert [comment.body for comment in found] == words[-limit:]
    assert [comment.raw_data["body"] for comment in found] == words[-limit:]
    assert len(github.requests) == pages, "those with the newest elements, and the first"
    assert [(comment.body, comment.user.login) for comment in comments] == [
        (word, "carol") for word in words
    ]
    assert len(github.requests) == pages + max(1, -(-many // 100)), "or an element was asked for"
