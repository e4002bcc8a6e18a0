"""Tests of the client: rate limits, server errors, pages and cached responses."""

from datetime import UTC, datetime, timedelta

import pytest

from resolver.config.retries import RetryPolicy
from resolver.errors import ForgeError, UsageError
from resolver.github.client.access import FixedToken, GitHubAccess
from resolver.github.client.failures import ServerFailure, message_in
from resolver.github.client.resources import query_graphql
from resolver.github.github_forge import GitHubForge
from tests.parts.clock import PassingTime
from tests.parts.github import GitHubServer

NAME = "octo/demo"
LIMITED = {"message": "API rate limit exceeded for user ID 1.", "documentation_url": "https://x"}


@pytest.fixture
def token(github: GitHubServer) -> str:
    github.create_repository(NAME, {"README.md": "x\n"})
    return github.token_for("octo", long=True)


def access(github: GitHubServer, token: str, **changes: object) -> GitHubAccess:
    values = {
        "api_url": f"{github.api_url}/",
        "server_url": github.server_url,
        "graphql_url": github.graphql_url,
        "retries": RetryPolicy(first_wait_seconds=0.02),
        "pause_between_writes": 0.0,
        **changes,
    }
    return GitHubAccess(FixedToken(token), **values)  # type: ignore[arg-type]


def branches(github: GitHubServer, token: str, **changes: object) -> set[str]:
    return GitHubForge(access(github, token, **changes), NAME).branches("")


def test_reads_and_queries_are_retried_after_an_error_or_a_lost_connection(
    github: GitHubServer, token: str
) -> None:
    for status in (500, 502, 503, 504):
        github.fail_next("GET", ".", status)
    assert branches(github, token) == {"main"}
    github.cut_next("GET", ".", times=2)
    assert branches(github, token) == {"main"}
    github.cut_next("POST", "/graphql$", after=True)
    github.fail_next("POST", "/graphql$", 502)
    found = query_graphql(access(github, token), "query { viewer { login } }", {})
    assert found == {"viewer": {"login": "octo"}}


@pytest.mark.attack
def test_a_query_is_sent_to_the_host_of_the_rest_api_alone(
    github: GitHubServer, token: str
) -> None:
    """The addresses of the two APIs are of two hosts: the token is sent to neither."""
    elsewhere = access(github, token, graphql_url="https://evil.example/graphql")
    with pytest.raises(UsageError, match="on two hosts"):
        query_graphql(elsewhere, "query { viewer { login } }", {})
    assert github.requests == []


@pytest.mark.parametrize(
    ("status", "requests", "error"), [(502, 4, ServerFailure), (403, 1, ForgeError)]
)
def test_a_failure_that_lasts_or_has_another_reason_is_reported(
    github: GitHubServer, token: str, status: int, requests: int, error: type[ForgeError]
) -> None:
    """No message contains the token."""
    body = {"message": f"bad {token} here", "documentation_url": "x"}
    github.fail_next("GET", ".", status, {}, body, times=99)
    with pytest.raises(error, match=str(status)) as caught:
        branches(github, token, attempts=3)
    assert len(github.requests) == requests
    assert "[token]" in caught.value.what and token[:40] not in str(caught.value)


@pytest.mark.parametrize(
    ("errors", "text"),
    [
        (None, "Invalid"),
        ("no way", "Invalid; no way"),
        (["no way", {"field": "head", "code": "bad"}], "Invalid; no way; head bad"),
    ],
)
def test_what_an_answer_says_is_quoted_in_any_of_its_forms(errors: object, text: str) -> None:
    assert message_in({"message": "Invalid", "errors": errors}) == text


def test_an_outage_during_a_poll_is_an_outage(github: GitHubServer, token: str) -> None:
    """GitHub's page for an outage is no JSON."""
    reader = GitHubForge(access(github, token, attempts=0), NAME).new_comments(1, datetime.now(UTC))
    github.fail_next("GET", "/comments", 502, {}, "<html>")
    with pytest.raises(ServerFailure, match="502"):
        reader.read()


@pytest.mark.parametrize("status", [403, 429])
def test_a_rate_limit_is_waited_for_if_it_ends_soon(
    github: GitHubServer, token: str, status: int
) -> None:
    time = PassingTime()
    soon = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(datetime.now().timestamp()))}
    secondary = {"message": "You have exceeded a secondary rate limit.", "documentation_url": "x"}
    github.fail_next("GET", ".", status, soon, LIMITED)
    github.fail_next("GET", ".", status, {"Retry-After": "7"}, LIMITED)
    github.fail_next("GET", ".", 403, {}, secondary)
    assert branches(github, token, retries=time.retries()) == {"main"}
    assert time.waits[1:] == [7.0, 60.0]
    reset = datetime.now(UTC).replace(second=30) + timedelta(minutes=40)
    late = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{reset.timestamp():.0f}"}
    github.fail_next("GET", ".", status, late, LIMITED, times=9)
    with pytest.raises(ForgeError, match="rate limit is reached") as caught:
        branches(github, token)
    assert f"after {reset:%H:%M}" in caught.value.next_step
    assert len(github.requests) == 5


def test_a_poll_that_finds_no_new_comment_costs_no_quota(github: GitHubServer, token: str) -> None:
    issue = github.create_issue(NAME, "new")
    reader = GitHubForge(access(github, token), NAME).new_comments(issue.number, issue.created_at)
    assert [reader.read(), reader.read()] == [[], []]
    github.add_comment(issue, "@agent stop", "octo")
    assert [comment.body for comment in reader.read()] == ["@agent stop"]
    assert [request.status for request in github.requests] == [200, 304, 200]


def test_a_new_comment_is_found_behind_pages_of_edited_ones(
    github: GitHubServer, token: str
) -> None:
    issue = github.create_issue(NAME, "new")
    old = [github.add_comment(issue, f"old {number}", "octo") for number in range(120)]
    github.advance(60)
    since = github.add_comment(issue, "@agent fix", "octo").created_at
    reader = GitHubForge(access(github, token), NAME).new_comments(issue.number, since)
    assert [comment.body for comment in reader.read()] == ["@agent fix"]
    github.advance(60)
    for comment in old:
        github.edit_comment(comment, "edited")
    github.add_comment(issue, "@agent stop", "octo")
    assert "@agent stop" in [comment.body for comment in reader.read()]
    github.add_comment(issue, "@agent continue", "octo")
    assert [comment.body for comment in reader.read()] == ["@agent continue"]
