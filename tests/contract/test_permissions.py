"""Tests of permissions on the test GitHub, and the messages of refusals."""

from typing import Any

import pytest
import requests

from tests.parts.github import GitHubServer

REPO = "octo/demo"
COMMENTS = f"/repos/{REPO}/issues/1/comments"


@pytest.fixture
def demo(github: GitHubServer) -> GitHubServer:
    github.create_repository(REPO)
    github.create_repository("octo/secret", private=True)
    github.create_issue(REPO, "It breaks", "help", author="bob")
    github.create_issue("octo/secret", "quiet")
    github.grant("alice", REPO, "write")
    return github


def ask(
    server: GitHubServer, method: str, path: str, token: str | None = None, body: Any = None
) -> requests.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return requests.request(method, server.api_url + path, json=body, headers=headers, timeout=10)


def test_anybody_reads_what_is_public(demo: GitHubServer) -> None:
    assert ask(demo, "GET", COMMENTS).status_code == 200


def test_writing_needs_a_token(demo: GitHubServer) -> None:
    answer = ask(demo, "POST", COMMENTS, body={"body": "x"})
    assert (answer.status_code, answer.json()["message"]) == (401, "Requires authentication")


def test_a_private_repository_is_not_found_by_strangers(demo: GitHubServer) -> None:
    assert ask(demo, "GET", "/repos/octo/secret").status_code == 404
    token = demo.token_for("alice")
    assert ask(demo, "GET", "/repos/octo/secret/issues/1", token).status_code == 404


def test_a_wrong_or_revoked_token_is_bad_even_for_public_reads(demo: GitHubServer) -> None:
    token = demo.token_for("alice")
    demo.revoke(token)
    for bad in (token, "ghp_wrong"):
        answer = ask(demo, "GET", COMMENTS, bad)
        assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")


def test_a_person_without_a_role_can_only_comment(demo: GitHubServer) -> None:
    token = demo.token_for("mallory")
    assert ask(demo, "POST", COMMENTS, token, {"body": "x"}).status_code == 201
    refused = ask(demo, "POST", f"/repos/{REPO}/issues/1/labels", token, {"labels": ["agent"]})
    assert refused.status_code == 403
    edit = ask(demo, "PATCH", f"/repos/{REPO}/issues/1", token, {"title": "mine"})
    assert edit.status_code == 403


@pytest.mark.parametrize(
    ("login", "kind"), [("alice", "personal access token"), ("resolver[bot]", "integration")]
)
def test_a_read_only_token_is_refused_with_githubs_message(
    demo: GitHubServer, login: str, kind: str
) -> None:
    token = demo.token_for(login, REPO, permissions={"issues": "read", "contents": "read"})
    assert ask(demo, "GET", COMMENTS, token).status_code == 200
    answer = ask(demo, "POST", COMMENTS, token, {"body": "x"})
    assert answer.status_code == 403
    assert answer.json()["message"] == f"Resource not accessible by {kind}"


def test_an_installation_does_not_write_outside_its_repositories(demo: GitHubServer) -> None:
    token = demo.token_for("resolver[bot]", "octo/secret")
    assert ask(demo, "GET", "/repos/octo/secret", token).status_code == 200
    assert ask(demo, "POST", COMMENTS, token, {"body": "x"}).status_code == 403


def test_an_installation_has_no_user(demo: GitHubServer) -> None:
    token = demo.token_for("resolver[bot]")
    assert ask(demo, "GET", "/user", token).status_code == 403
    answer = requests.post(
        demo.graphql_url,
        json={"query": "{ viewer { login } }"},
        headers={"Authorization": f"Bearer {token}"},
        timeout=10,
    )
    assert answer.json() == {"data": {"viewer": {"login": "resolver[bot]"}}}


@pytest.mark.parametrize(
    ("role", "permission"),
    [
        (None, "read"),
        ("read", "read"),
        ("triage", "read"),
        ("write", "write"),
        ("maintain", "write"),
        ("admin", "admin"),
    ],
)
def test_permission_is_coarse_and_role_name_fine(
    demo: GitHubServer, role: str | None, permission: str
) -> None:
    demo.grant("carol", REPO, role, association="MEMBER")
    token = demo.token_for("alice")
    answer = ask(demo, "GET", f"/repos/{REPO}/collaborators/carol/permission", token).json()
    assert (answer["permission"], answer["role_name"]) == (permission, role or "read")


def test_a_stranger_of_a_private_repository_has_permission_none(demo: GitHubServer) -> None:
    path = "/repos/octo/secret/collaborators/alice/permission"
    assert ask(demo, "GET", path, demo.token_for("octo")).json()["permission"] == "none"


def test_permissions_are_shown_to_writers_and_only_for_people_who_exist(
    demo: GitHubServer,
) -> None:
    path = f"/repos/{REPO}/collaborators"
    assert ask(demo, "GET", f"{path}/alice/permission", demo.token_for("bob")).status_code == 403
    assert ask(demo, "GET", f"{path}/ghost/permission", demo.token_for("octo")).status_code == 404


def test_an_archived_repository_is_read_only(demo: GitHubServer) -> None:
    demo.repository(REPO).archived = True
    answer = ask(demo, "POST", COMMENTS, demo.token_for("alice"), {"body": "x"})
    assert "archived" in answer.json()["message"]


def test_a_locked_issue_accepts_comments_of_writers_only(demo: GitHubServer) -> None:
    demo.repository(REPO).issues[1].locked = True
    assert ask(demo, "POST", COMMENTS, demo.token_for("bob"), {"body": "x"}).status_code == 403
    assert ask(demo, "POST", COMMENTS, demo.token_for("alice"), {"body": "x"}).status_code == 201


def test_the_actions_token_may_be_unable_to_open_pull_requests(demo: GitHubServer) -> None:
    demo.repository(REPO).actions_may_create_pulls = False
    demo.commit(REPO, "work", {"a": "b"})
    token = demo.token_for("github-actions[bot]", REPO)
    body = {"title": "t", "head": "work", "base": "main"}
    answer = ask(demo, "POST", f"/repos/{REPO}/pulls", token, body)
    assert answer.status_code == 403
    assert "not permitted to create" in answer.json()["message"]


def test_the_long_token_form_is_about_520_characters(demo: GitHubServer) -> None:
    token = demo.token_for("resolver[bot]", REPO, long=True)
    assert 480 <= len(token) <= 560
    assert token.startswith("ghs_")
    assert token.count(".") == 2
    assert ask(demo, "POST", COMMENTS, token, {"body": "x"}).status_code == 201
