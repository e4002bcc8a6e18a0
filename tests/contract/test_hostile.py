"""Property tests: the test GitHub refuses invalid requests and never breaks."""

import json
from collections.abc import Iterator

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.github import GitHubServer, github_server

PATHS = (
    "issues",
    "issues/1/comments",
    "issues/1/labels",
    "issues/1/reactions",
    "pulls",
    "git/refs",
    "labels",
    "check-runs",
)
WORDS = st.sampled_from(
    ["body", "title", "labels", "name", "head", "base", "ref", "sha", "content", "draft"]
)
QUERY_PARTS = [
    "query",
    "{",
    "}",
    "(",
    ")",
    ":",
    "$",
    "viewer",
    "login",
    "repository",
    "issue",
    "...",
    "owner",
    "name",
    "number",
    '"octo"',
    '"demo"',
    "1",
    "comments",
    "first",
    "x",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubServer]:
    """A server that validates nothing, because its requests are wrong on purpose."""
    with github_server(tmp_path_factory.mktemp("github")) as running:
        running.create_repository("octo/demo")
        running.create_issue("octo/demo", "It breaks")
        yield running


@pytest.fixture(scope="module")
def session(server: GitHubServer) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {server.token_for('octo')}"
        yield session


@given(path=st.sampled_from(PATHS), body=VALUES.map(json.dumps).map(str.encode) | st.binary())
def test_no_body_breaks_an_endpoint(
    server: GitHubServer, session: requests.Session, path: str, body: bytes
) -> None:
    url = f"{server.api_url}/repos/octo/demo/{path}"
    assert session.post(url, data=body, timeout=10).status_code < 500


@given(
    st.lists(st.sampled_from(QUERY_PARTS), max_size=15).map(" ".join) | st.text(max_size=30),
)
def test_no_query_breaks_graphql(
    server: GitHubServer, session: requests.Session, query: str
) -> None:
    answer = session.post(server.graphql_url, json={"query": query}, timeout=10)
    assert answer.status_code == 200
    assert set(answer.json()) in ({"data"}, {"errors"})
