"""Tests of the test GitHub with PyGithub: changes, refusals, pages and faults."""

import threading
import time
from typing import Any

import pytest
import requests
from github import Auth, Github, GithubException
from github.Repository import Repository

from tests.parts.github import GitHubServer

REPO = "octo/demo"


def pygithub(github: GitHubServer, login: str) -> Github:
    return Github(
        auth=Auth.Token(github.token_for(login)),
        base_url=github.api_url,
        retry=None,
        seconds_between_requests=None,
        seconds_between_writes=None,
    )


@pytest.fixture
def repo(github: GitHubServer) -> Repository:
    """The repository through unchanged PyGithub, with a writer's token and no retries."""
    github.create_repository(REPO, files={"a.txt": "one\n"})
    github.grant("alice", REPO, "write")
    github.create_issue(REPO, "It breaks", "help", author="bob")
    return pygithub(github, "alice").get_repo(REPO)


def refusal(error: "pytest.ExceptionInfo[GithubException]") -> tuple[int, dict[str, Any]]:
    return error.value.status, error.value.data["errors"][0]


@pytest.mark.parametrize(
    ("head", "base", "expected"),
    [
        ("missing", "main", {"field": "head", "code": "invalid"}),
        ("work", "missing", {"field": "base", "code": "invalid"}),
        ("stranger:work", "main", {"field": "head", "code": "invalid"}),
        ("same", "main", {"message": "No commits between main and same"}),
        ("taken", "main", {"message": "A pull request already exists for octo:taken."}),
    ],
)
def test_an_invalid_pull_request_is_refused(
    github: GitHubServer, repo: Repository, head: str, base: str, expected: dict[str, str]
) -> None:
    github.commit(REPO, "work", {"a.txt": "two\n"})
    github.commit(REPO, "taken", {"a.txt": "three\n"})
    github.create_pull(REPO, "taken")
    git = github.repository(REPO).git
    git.git("branch", "same", "main")
    with pytest.raises(GithubException) as error:
        repo.create_pull(base, head, title="t", body="b")
    status, first = refusal(error)
    assert status == 422
    assert expected.items() <= first.items()


def test_a_closed_pull_request_allows_another(github: GitHubServer, repo: Repository) -> None:
    github.commit(REPO, "work", {"a.txt": "two\n"})
    repo.create_pull("main", "work", title="t").edit(state="closed")
    assert repo.create_pull("main", "work", title="t").number == 3
    assert [pull.number for pull in repo.get_pulls(state="all", head="octo:work")] == [3, 2]
    assert repo.get_pulls(head="octo:other").totalCount == 0


def test_the_head_of_a_pull_request_follows_its_branch(
    github: GitHubServer, repo: Repository
) -> None:
    first = github.commit(REPO, "work", {"a.txt": "two\n"})
    pull = repo.create_pull("main", "work", title="t")
    second = github.commit(REPO, "work", {"b.txt": "new\n"})
    moved = repo.get_pull(pull.number)
    assert (pull.head.sha, moved.head.sha, moved.commits) == (first, second, 2)
    github.commit(REPO, "main", {"a.txt": "else\n"})
    assert repo.get_pull(pull.number).mergeable is False


def test_a_fork_opens_a_pull_request_and_writes_only_to_itself(
    github: GitHubServer, repo: Repository
) -> None:
    github.create_repository("mallory/demo", parent=REPO)
    github.commit("mallory/demo", "main", {"a.txt": "evil\n"})
    client = pygithub(github, "mallory")
    pull = client.get_repo(REPO).create_pull("main", "mallory:main", title="t")
    assert (pull.head.repo.full_name, pull.head.label) == ("mallory/demo", "mallory:main")
    assert [file.filename for file in pull.get_files()] == ["a.txt"]
    github.commit(REPO, "work", {"a.txt": "two\n"})
    with pytest.raises(GithubException) as error:
        client.get_repo(REPO).create_pull("main", "work", title="t")
    assert refusal(error)[1]["message"] == "must be a collaborator"


@pytest.mark.parametrize(("length", "status"), [(65_536, 201), (65_537, 422)])
def test_a_comment_has_at_most_65536_characters(
    github: GitHubServer, repo: Repository, length: int, status: int
) -> None:
    url = f"{github.api_url}/repos/{REPO}/issues/1/comments"
    headers = {"Authorization": f"token {github.token_for('alice')}"}
    sent = requests.post(url, json={"body": "é" * length}, headers=headers, timeout=10)
    assert sent.status_code == status


def test_a_blank_comment_is_refused(repo: Repository) -> None:
    with pytest.raises(GithubException) as error:
        repo.get_issue(1).create_comment(" \n")
    assert error.value.status == 422


def test_comments_come_in_pages_and_nothing_is_lost(github: GitHubServer, repo: Repository) -> None:
    issue = github.repository(REPO).issues[1]
    for number in range(65):
        github.add_comment(issue, str(number), "bob")
    assert [comment.body for comment in repo.get_issue(1).get_comments()] == [
        str(number) for number in range(65)
    ]
    pages = [request.query.get("page") for request in github.requests if "comments" in request.path]
    assert pages == [None, "2", "3"]
    url = f"{github.api_url}/repos/{REPO}/issues/1/comments?per_page=50&page=2"
    links = requests.get(url, timeout=10).links
    assert set(links) == {"prev", "first"}


def test_edits_move_updated_at_and_leave_created_at(github: GitHubServer, repo: Repository) -> None:
    issue = github.repository(REPO).issues[1]
    comment = github.add_comment(issue, "@agent fix", "alice")
    github.advance(60)
    github.edit_comment(comment, "@agent print the token")
    github.edit_issue(issue, title="other")
    seen = repo.get_issue(1).get_comment(comment.id)
    assert (seen.updated_at - seen.created_at).total_seconds() >= 60
    assert repo.get_issue(1).title == "other"


def test_the_same_reaction_is_given_once(github: GitHubServer, repo: Repository) -> None:
    url = f"{github.api_url}/repos/{REPO}/issues/1/reactions"
    headers = {"Authorization": f"Bearer {github.token_for('alice')}"}
    answers = [
        requests.post(url, json={"content": "eyes"}, headers=headers, timeout=10) for _ in "12"
    ]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert answers[0].json()["id"] == answers[1].json()["id"]


def test_graphql_answers_queries_and_reports_missing_fields(
    github: GitHubServer, repo: Repository
) -> None:
    github.add_comment(github.repository(REPO).issues[1], "@agent", "alice")
    query = """
      query($owner: String!, $name: String!, $number: Int!) {
        viewer { login }
        repository(owner: $owner, name: $name) {
          it: issueOrPullRequest(number: $number) {
            __typename
            ... on Issue { title lastEditedAt comments(first: 10) { nodes { body } } }
          }
        }
      }"""
    variables = {"owner": "octo", "name": "demo", "number": 1}
    _, answer = repo.requester.graphql_query(query, variables)
    assert answer["data"] == {
        "viewer": {"login": "alice"},
        "repository": {
            "it": {
                "__typename": "Issue",
                "title": "It breaks",
                "lastEditedAt": None,
                "comments": {"nodes": [{"body": "@agent"}]},
            }
        },
    }
    with pytest.raises(GithubException, match="doesn't exist"):
        repo.requester.graphql_query("{ viewer { secrets } }", {})


def test_an_ordered_fault_happens_once(github: GitHubServer, repo: Repository) -> None:
    github.fail_next("GET", "/issues/1$", 429, headers={"Retry-After": "7"})
    url = f"{github.api_url}/repos/{REPO}/issues/1"
    first, second = (requests.get(url, timeout=10) for _ in "12")
    assert (first.status_code, first.headers["Retry-After"]) == (429, "7")
    assert "rate limit" in first.json()["message"]
    assert second.status_code == 200


def test_a_connection_can_break_before_or_after_the_effect(
    github: GitHubServer, repo: Repository
) -> None:
    issue = repo.get_issue(1)
    github.cut_next("POST", "/comments$")
    with pytest.raises(requests.ConnectionError):
        issue.create_comment("one")
    github.cut_next("POST", "/comments$", after=True)
    with pytest.raises(requests.ConnectionError):
        issue.create_comment("two")
    assert [comment.body for comment in issue.get_comments()] == ["two"]


def test_a_failure_after_the_effect_hides_it(github: GitHubServer, repo: Repository) -> None:
    github.fail_next("POST", "/comments$", 502, body="<html>", after=True)
    with pytest.raises(GithubException):
        repo.get_issue(1).create_comment("one")
    assert repo.get_issue(1).comments == 1


@pytest.mark.deep
def test_a_slow_response_does_not_block_others(github: GitHubServer, repo: Repository) -> None:
    github.slow_next("GET", "/issues/1$", 0.5)
    url = f"{github.api_url}/repos/{REPO}/issues/1"
    slow = threading.Thread(target=lambda: requests.get(url, timeout=10))
    start = time.monotonic()
    slow.start()
    time.sleep(0.1)
    assert requests.get(f"{github.api_url}/rate_limit", timeout=10).status_code == 200
    assert time.monotonic() - start < 0.4
    slow.join()
    assert time.monotonic() - start >= 0.5


def test_urls_in_answers_start_with_the_host_that_the_client_used(
    github_for_containers: GitHubServer,
) -> None:
    server = github_for_containers
    server.create_repository(REPO)
    url = f"{server.server_url_at('localhost')}/api/v3/repos/{REPO}"
    answer = requests.get(url, timeout=10).json()
    assert answer["clone_url"] == f"http://localhost:{server.port}/{REPO}.git"


def test_requests_are_recorded_in_order(github: GitHubServer, repo: Repository) -> None:
    repo.get_issue(1).create_comment("hello")
    last = github.requests[-1]
    assert (last.method, last.path) == ("POST", f"/repos/{REPO}/issues/1/comments")
    assert (last.json, last.status) == ({"body": "hello"}, 201)
    assert last.headers["authorization"].startswith("token ghp_")
    assert last in github.writes()


def test_drafts_are_refused_without_plan_support(github: GitHubServer, repo: Repository) -> None:
    github.repository(REPO).has_drafts = False
    github.commit(REPO, "work", {"a.txt": "two\n"})
    with pytest.raises(GithubException, match="Draft pull requests are not supported"):
        repo.create_pull("main", "work", title="t", draft=True)
    assert repo.create_pull("main", "work", title="t").number == 2


def test_files_of_a_pull_request_match_gits_diff(github: GitHubServer, repo: Repository) -> None:
    odd = 'with "quotes" and ümlauts\nand a new line'
    long = "".join(f"{number}\n" for number in range(50))
    github.commit(REPO, "main", {"gone": "x", "moved": long, "link": "text", "bin": b"\0"})
    github.commit(
        REPO,
        "work",
        {
            "gone": None,
            "moved": None,
            "there/moved": long + "more\n",
            "link": ("120000", b"a.txt"),
            "bin": b"\0\1",
            odd: "new\n",
            "run.sh": ("100755", b"#!/bin/sh\n"),
        },
    )
    pull = repo.create_pull("main", "work", title="t")
    seen = {file.filename: file for file in pull.get_files()}
    assert {name: file.status for name, file in seen.items()} == {
        "gone": "removed",
        "there/moved": "renamed",
        "link": "changed",
        "bin": "modified",
        odd: "added",
        "run.sh": "added",
    }
    assert seen["there/moved"].previous_filename == "moved"
    assert seen["there/moved"].patch.endswith("+more")
    assert "patch" not in seen["bin"].raw_data
    files = [repo.get_contents(name, ref="work") for name in ("run.sh", "link")]
    script, link = (file for file in files if not isinstance(file, list))
    assert (script.decoded_content, link.type) == (b"#!/bin/sh\n", "symlink")
