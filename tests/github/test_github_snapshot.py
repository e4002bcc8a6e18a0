"""Tests of the query for a repository's refs and its owner's repositories."""

from resolver.github.client.access import GitHubAccess
from resolver.github.client.snapshot import (
    MAX_HISTORY,
    RepositorySnapshot,
    read_snapshot,
)
from tests.git.scenario import plain_git
from tests.parts.github import GitHubServer

WANTED = (".a", ".b")


def make_access(github: GitHubServer, graphql_url: str = "") -> GitHubAccess:
    token = github.token_for("octo", "octo/calc")
    urls = (github.api_url, github.server_url, graphql_url or github.graphql_url)
    return GitHubAccess(token, *urls, attempts=0)


def test_a_new_repository_has_only_a_default_branch(github: GitHubServer) -> None:
    made = github.create_repository("octo/calc", {"a": "1"})
    github.create_repository("octo/.b", {"a": "1"})
    found = read_snapshot(make_access(github), "octo/calc", WANTED)
    tip = made.git.tip("main") or ""
    assert found == RepositorySnapshot("main", tip, (tip,), True, siblings=frozenset({".b"}))


def test_a_history_is_known_unless_one_of_its_commits_is_a_merge(github: GitHubServer) -> None:
    git = github.create_repository("octo/calc", {"a": "1"}).git
    tree, commits = git.text("rev-parse", "main^{tree}"), [git.text("rev-parse", "main")]

    def add(*parents: str) -> RepositorySnapshot:
        options = [option for parent in parents for option in ("-p", parent)]
        message = f"{len(commits)}"
        commits.insert(0, plain_git(git.path, "commit-tree", tree, *options, "-m", message))
        git.text("update-ref", "refs/heads/main", commits[0])
        found = read_snapshot(make_access(github), "octo/calc", WANTED)
        assert found is not None
        return found

    for _ in range(MAX_HISTORY - 1):
        found = add(commits[0])
    assert (found.linear_history, found.has_root) == (tuple(commits), True)
    found = add(commits[0])
    assert (found.linear_history, found.has_root) == (tuple(commits[:MAX_HISTORY]), False)
    found = add(commits[0], commits[5])
    assert (found.linear_history, found.has_root) == ((), False)


def test_the_refs_are_read_with_git_if_the_query_fails(github: GitHubServer) -> None:
    github.create_repository("octo/calc", {"a": "1"})
    access = make_access(github, "http://127.0.0.1:1/graphql")
    assert read_snapshot(access, "octo/calc", WANTED) is None
    assert read_snapshot(make_access(github), "octo/none", WANTED) is None
