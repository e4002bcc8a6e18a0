"""Tests of reviews, activity and pull request refs of the test GitHub, with PyGithub and git."""

import subprocess
from typing import Any

import pytest
from github import GithubException
from github.PullRequest import PullRequest

from tests.contract.test_state import REPO, pygithub
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

TEXT = "".join(f"{n}\n" for n in range(1, 31))


@pytest.fixture
def issue(github: GitHubServer) -> Issue:
    github.create_repository(REPO, {"a.txt": TEXT})
    github.grant("alice", REPO, "write")
    github.create_repository("zoe/demo", parent=REPO)
    github.commit("zoe/demo", "work", {"a.txt": TEXT.replace("15\n", "x\n")})
    return github.create_pull(REPO, "zoe:work", author="zoe")


@pytest.fixture
def pull(github: GitHubServer, issue: Issue) -> PullRequest:
    return pygithub(github, "alice").get_repo(REPO).get_pull(issue.number)


def comment(line: int, **more: Any) -> dict[str, Any]:
    return {"path": "a.txt", "line": line, "side": "RIGHT", "body": "hm", **more}


def test_a_review_with_comments_is_visible_to_everybody(issue: Issue, pull: PullRequest) -> None:
    made = pull.create_review(
        body="So it is.", event="COMMENT", comments=[comment(15), comment(16, start_line=14)]
    )
    assert (made.state, made.body) == ("COMMENTED", "So it is.")
    assert [r.id for r in pull.get_reviews()] == [made.id]
    assert [(c.start_line, c.line) for c in pull.get_review_comments()] == [(None, 15), (14, 16)]
    assert [c.pull_request_review_id for c in pull.get_single_review_comments(made.id)] == [
        made.id,
        made.id,
    ]


def test_a_pending_review_is_visible_to_its_author_and_can_be_deleted(
    github: GitHubServer, issue: Issue, pull: PullRequest
) -> None:
    draft = pull.create_review(comments=[comment(15)])
    assert draft.state == "PENDING"
    seen_by_owner = pygithub(github, "octo").get_repo(REPO).get_pull(issue.number)
    assert list(seen_by_owner.get_reviews()) == list(seen_by_owner.get_review_comments()) == []
    with pytest.raises(GithubException, match="one pending review"):
        pull.create_review(body="x", event="COMMENT")
    draft.delete()
    assert pull.create_review(body="x", event="COMMENT").state == "COMMENTED"


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"event": "COMMENT"}, "blank"),
        ({"body": "x", "event": "COMMENT", "comments": [comment(2)]}, "could not be resolved"),
        ({"body": "x", "event": "COMMENT", "comments": [comment(15, path="b")]}, "resolved"),
        ({"body": "x" * 65_537, "event": "COMMENT"}, "too long"),
    ],
)
def test_an_invalid_review_is_refused_as_a_whole(
    issue: Issue, pull: PullRequest, sent: dict[str, Any], says: str
) -> None:
    with pytest.raises(GithubException, match=says) as error:
        pull.create_review(**sent)
    assert error.value.status == 422
    assert issue.reviews == []


def test_nobody_can_approve_their_own_pull_request(github: GitHubServer, issue: Issue) -> None:
    own_pull = pygithub(github, "zoe").get_repo(REPO).get_pull(issue.number)
    with pytest.raises(GithubException, match="own pull request"):
        own_pull.create_review(event="APPROVE")


def test_a_forks_head_is_a_ref_of_the_repository(github: GitHubServer, issue: Issue) -> None:
    def head() -> str:
        url = f"{github.server_url}/{REPO}.git"
        listed = subprocess.run(
            ["git", "ls-remote", url, f"refs/pull/{issue.number}/head"],
            capture_output=True,
            check=True,
        )
        return listed.stdout.decode().split()[0]

    fork = github.repository("zoe/demo").git
    assert head() == fork.tip("work")
    later = github.commit("zoe/demo", "work", {"a.txt": "y\n"})
    assert head() == later


def test_activity_lists_each_push_newest_first(github: GitHubServer, issue: Issue) -> None:
    first = github.repository("zoe/demo").git.tip("work")
    github.advance(30)
    second = github.commit("zoe/demo", "work", {"a.txt": "y\n"})
    assert first is not None
    github.force_push("zoe/demo", "work", first)
    repository = pygithub(github, "alice").get_repo("zoe/demo")
    _, rows = repository.requester.requestJsonAndCheck(
        "GET", f"{repository.url}/activity", {"ref": "refs/heads/work"}
    )
    assert [(r["activity_type"], r["before"], r["after"]) for r in rows] == [
        ("force_push", second, first),
        ("push", first, second),
        ("branch_creation", "0" * 40, first),
    ]
