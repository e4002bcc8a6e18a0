"""Tests of deleting branches of interrupted attempts before the next push."""

import pytest

from tests.github.test_github_reading import NAME, forge_for
from tests.parts.github import GitHubServer
from tests.parts.github_server.routes_pulls import new_pull

RUN = "20260101-120000-abcdef"
OURS = f"Fix it\n\nFixes #1\nResolver-Run: {RUN}"


@pytest.fixture(autouse=True)
def repository(github: GitHubServer) -> None:
    github.create_repository(NAME, files={"README.md": "hello"})


def left(github: GitHubServer) -> set[str]:
    """The branches after the attempt's rest was removed."""
    forge = forge_for(github)
    forge.discard_abandoned("agent/fix", RUN)
    return forge.branches("")


def test_a_branch_of_the_run_without_a_pull_request_is_removed(github: GitHubServer) -> None:
    github.commit(NAME, "agent/fix", {"a.py": "1"}, OURS)
    github.commit(NAME, "agent/fix-2", {"a.py": "2"}, OURS)
    assert left(github) == {"main"}


@pytest.mark.parametrize(
    "message",
    [
        "Fix it",
        f"Fix it\n\nResolver-Run: {RUN}-2",
        f"Fix it\n\nResolver-Run: 2{RUN}",
        f"Fix it\n\n> Resolver-Run: {RUN}",
    ],
)
def test_other_branches_stay(github: GitHubServer, message: str) -> None:
    github.commit(NAME, "agent/fix", {"a.py": "1"}, message)
    assert left(github) == {"main", "agent/fix"}


def test_a_branch_with_commits_of_others_stays(github: GitHubServer) -> None:
    github.commit(NAME, "agent/fix", {"a.py": "1"}, OURS)
    github.commit(NAME, "agent/fix", {"a.py": "2"}, "Better so")
    assert left(github) == {"main", "agent/fix"}


@pytest.mark.parametrize("state", ["open", "closed"])
def test_a_branch_with_a_pull_request_stays(github: GitHubServer, state: str) -> None:
    github.commit(NAME, "agent/fix", {"a.py": "1"}, OURS)
    github.create_pull(NAME, "agent/fix").state = state
    assert left(github) == {"main", "agent/fix"}


def test_a_forks_pull_request_does_not_keep_resolvers_branch(github: GitHubServer) -> None:
    github.commit(NAME, "agent/fix", {"a.py": "1"}, OURS)
    fork = github.create_repository("octo/demo-two", parent=NAME)
    words, by = ("Fix", ""), github.world.account("mallory")
    new_pull(github.world, github.repository(NAME), (fork, "agent/fix"), "main", words, by)
    assert left(github) == {"main"}


def test_a_branch_of_another_repository_stays(github: GitHubServer) -> None:
    github.commit(NAME, "work/fix", {"a.py": "1"}, OURS)
    assert left(github) == {"main", "work/fix"}


def test_failing_to_remove_ends_nothing(github: GitHubServer) -> None:
    github.commit(NAME, "agent/fix", {"a.py": "1"}, OURS)
    github.fail_next("DELETE", "/git/refs/", 403, body={"message": "Resource not accessible"})
    assert left(github) == {"main", "agent/fix"}
