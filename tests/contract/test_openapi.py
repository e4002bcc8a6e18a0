"""Compares all endpoints of the test GitHub with GitHub's own description."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.parts import published as source
from tests.parts.github import GitHubServer, github_server
from tests.parts.github_server import description
from tests.parts.github_server.description import Description


@pytest.fixture(scope="session")
def described() -> Description:
    return description.load(source.require(source.OPENAPI))


@pytest.fixture
def unchecked(tmp_path: Path) -> Iterator[GitHubServer]:
    """A server whose traffic may be wrong."""
    with github_server(tmp_path) as server:
        server.create_repository("octo/demo")
        yield server


def test_refusals_match_githubs_description(
    unchecked: GitHubServer, described: Description
) -> None:
    token = unchecked.token_for("reader", permissions={"contents": "read"})
    repo = f"{unchecked.api_url}/repos/octo/demo"
    unchecked.create_issue("octo/demo", "It breaks")
    for method, path, body in (
        ("POST", "/issues/1/comments", {"body": "x"}),
        ("POST", "/pulls", {"title": "t", "head": "none", "base": "main"}),
        ("GET", "/issues/99", None),
        ("POST", "/git/refs", {"ref": "refs/heads/x", "sha": "0" * 40}),
    ):
        for headers in ({}, {"Authorization": f"Bearer {token}"}, {"Authorization": "Bearer no"}):
            answer = requests.request(method, repo + path, json=body, headers=headers, timeout=10)
            assert answer.status_code in (401, 403, 404)
    found = [problem for request in unchecked.requests for problem in described.problems(request)]
    assert found == []


@pytest.mark.parametrize(
    ("method", "path", "body", "problem"),
    [
        ("POST", "/issues/1/comments", {"text": "hello"}, '"body" is a required property'),
        ("POST", "/issues/1/comments", {"body": "x", "colour": 1}, "colour, which GitHub does not"),
        ("GET", "/issues?per_page=many", None, '"many" is not of type "integer"'),
        ("PUT", "/issues/1", {"title": "x"}, "no such endpoint"),
    ],
)
def test_a_wrong_request_fails_the_test_that_made_it(
    unchecked: GitHubServer,
    described: Description,
    method: str,
    path: str,
    body: Any,
    problem: str,
) -> None:
    url = f"{unchecked.api_url}/repos/octo/demo{path}"
    requests.request(method, url, json=body, timeout=10)
    with pytest.raises(AssertionError, match=problem):
        unchecked.validate_everything()
