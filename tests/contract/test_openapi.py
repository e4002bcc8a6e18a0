"""Compares all endpoints of the test GitHub with GitHub's own description."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from github import Auth, Github, GithubIntegration

from tests.parts import published as source
from tests.parts.github import GitHubServer, github_server
from tests.parts.github_server import description
from tests.parts.github_server.bare import FileContent
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


def client(server: GitHubServer, token: str) -> Github:
    return Github(
        auth=Auth.Token(token),
        base_url=server.api_url,
        retry=None,
        seconds_between_requests=None,
        seconds_between_writes=None,
    )


def test_every_endpoint_matches_githubs_description(
    github: GitHubServer, described: Description
) -> None:
    github.create_repository("octo/demo", files={"a.txt": "one\n", "dir/b.bin": b"\0\1\2"})
    github.add_user("alice", name="Alice", email="alice@example.com")
    github.grant("alice", "octo/demo", "maintain")
    issue = github.create_issue("octo/demo", "It breaks", None, author="bob", labels=("bug",))
    github.add_comment(issue, "@agent fix", "alice")
    repo = client(github, github.token_for("alice")).get_repo("octo/demo")
    _drive_issues(repo)
    _drive_git(repo)
    _drive_pulls(github, repo)
    _drive_app(github)
    rest = [request for request in github.requests if request.kind == "rest"]
    assert len(rest) > 30
    assert [problem for request in rest for problem in described.problems(request)] == []


def _drive_issues(repo: Any) -> None:
    issue = repo.get_issue(1)
    assert [comment.body for comment in issue.get_comments()] == ["@agent fix"]
    comment = issue.create_comment("on it")
    comment.edit("done")
    comment.create_reaction("eyes")
    comment.create_reaction("eyes")
    assert comment.get_reactions().totalCount == 1
    assert issue.create_reaction("rocket").content == "rocket"
    issue.add_to_labels("agent")
    made = repo.create_issue("another", body="text", labels=["bug"])
    assert [issue.number for issue in repo.get_issues(labels=["bug"])] == [made.number, 1]


def _drive_git(repo: Any) -> None:
    assert repo.get_collaborator_permission("alice") == "write"
    assert repo.get_collaborator_role_name("alice") == "maintain"
    assert repo.get_contents("a.txt").decoded_content == b"one\n"
    assert [file.path for file in repo.get_contents("")] == ["a.txt", "dir"]
    head = repo.get_branch("main").commit.sha
    repo.create_git_ref("refs/heads/agent/x", head)
    assert [ref.ref for ref in repo.get_git_matching_refs("heads/agent/")] == ["refs/heads/agent/x"]
    assert {branch.name for branch in repo.get_branches()} == {"main", "agent/x"}
    assert repo.get_commits()[0].sha == head
    assert {file.filename for file in repo.get_commit("main").files} == {"a.txt", "dir/b.bin"}
    assert repo.get_commit(head).get_check_runs().totalCount == 0


def _drive_pulls(github: GitHubServer, repo: Any) -> None:
    files: dict[str, FileContent] = {"a.txt": "one\ntwo\n", "dir/b.bin": b"\0\3", "c.txt": "new\n"}
    head = github.commit("octo/demo", "agent/fix", files)
    pull = repo.create_pull("main", "agent/fix", title="Fix", body="Fixes #1", draft=True)
    assert (pull.head.sha, pull.changed_files, pull.additions) == (head, 3, 2)
    assert pull.mergeable
    assert [commit.sha for commit in pull.get_commits()] == [head]
    assert [listed.number for listed in repo.get_pulls(head="octo:agent/fix")] == [pull.number]
    pull.create_issue_comment("see #1")
    noted = github.add_review_comment(
        github.repository("octo/demo").issues[3], "a.txt", 2, "?", "bob"
    )
    pull.create_review_comment_reply(noted.id, "because")
    pull.get_review_comment(noted.id).create_reaction("+1")
    assert pull.get_review_comments().totalCount == 2


def _drive_app(github: GitHubServer) -> None:
    app = github.add_app("resolver", "octo/demo")
    signed = GithubIntegration(
        auth=Auth.AppAuth(app.id, app.private_key), base_url=github.api_url, retry=None
    )
    assert signed.get_app().slug == "resolver"
    installation = signed.get_repo_installation("octo", "demo")
    token = signed.get_access_token(installation.id, permissions={"checks": "write"}).token
    repo = client(github, token).get_repo("octo/demo")
    output = {"title": "t", "summary": "s"}
    commit = repo.get_branch("main").commit.sha
    repo.create_check_run("resolver", commit, conclusion="success", output=output)
    assert repo.get_commit("main").get_check_runs()[0].conclusion == "success"


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
