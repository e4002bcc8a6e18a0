"""Tests of the query for a repository's refs and its owner's repositories."""

from pathlib import Path

import pytest

from resolver.git.git import HostGit, create_bare_repository
from resolver.git.remote import OrphanCommit, write_orphans
from resolver.github.client.access import FixedToken, GitHubAccess
from resolver.github.client.snapshot import (
    RepositorySnapshot,
    read_snapshot,
)
from tests.parts.github import GitHubServer
from tests.parts.github_server.graphql import MOST_TEXT

REF, PATH, BELOW = "refs/resolver/ledger", "ledger.jsonl", "refs/resolver/runs/7/"
WANTED = (REF, PATH, BELOW, (".a", ".b"))


def make_access(github: GitHubServer, token: str | None = None) -> GitHubAccess:
    token = token or github.token_for("octo", "octo/calc")
    urls = (github.api_url, github.server_url, github.graphql_url)
    return GitHubAccess(FixedToken(token), *urls, attempts=0)


def put(github: GitHubServer, folder: Path, content: bytes) -> str:
    """Write a ledger and a log to the server's repository, and return the commit of the ledger."""
    git = create_bare_repository(folder / "new.git")
    ledger = OrphanCommit(REF, "Ledger", {PATH: content})
    log = OrphanCommit(f"{BELOW}run", "Log", {"log": b"1"})
    made = write_orphans(git, [ledger, log])
    served_git = HostGit(git_dir=github.repository("octo/calc").git.path)
    for commit, snapshot in zip(made, (ledger, log), strict=True):
        served_git.run("fetch", "--quiet", str(folder / "new.git"), f"{commit}:{snapshot.ref}")
    return made[0]


def test_a_new_repository_has_only_a_default_branch(github: GitHubServer) -> None:
    made = github.create_repository("octo/calc", {"a": "1"})
    github.create_repository("octo/.b", {"a": "1"})
    found = read_snapshot(make_access(github), "octo/calc", *WANTED)
    tip = made.git.tip("main") or ""
    assert found == RepositorySnapshot("main", tip, siblings=frozenset({".b"}))


@pytest.mark.attack
@pytest.mark.parametrize("is_private", [True, False])
def test_private_skills_are_for_private_repositories(
    github: GitHubServer, is_private: bool
) -> None:
    """A run on a public repository can read private ones of its owner: it shows nothing of them."""
    github.create_repository("octo/calc", {"a": "1"}, private=is_private)
    github.create_repository("octo/.a", {"a": "1"}, private=True)
    github.create_repository("octo/.b", {"a": "1"})
    token = github.token_for("octo", "octo/calc", "octo/.a", "octo/.b")
    found = read_snapshot(make_access(github, token), "octo/calc", *WANTED)
    assert found is not None
    assert found.siblings == ({".a", ".b"} if is_private else {".b"})


@pytest.mark.parametrize(
    ("stored", "content"),
    [(b'{"a": "\xc3\xa9"}\n', '{"a": "\u00e9"}\n'), (b"x" * (MOST_TEXT + 1), None)],
    ids=["whole", "truncated"],
)
def test_a_ref_is_read_with_its_file_if_that_is_whole(
    github: GitHubServer, tmp_path: Path, stored: bytes, content: str | None
) -> None:
    github.create_repository("octo/calc", {"a": "1"})
    tip = put(github, tmp_path, stored)
    found = read_snapshot(make_access(github), "octo/calc", *WANTED)
    assert found is not None
    assert (found.ref_tip, found.content, found.ref_names) == (tip, content, ("run",))


def test_the_refs_are_read_with_git_if_the_query_fails(github: GitHubServer) -> None:
    github.create_repository("octo/calc", {"a": "1"})
    access = make_access(github)
    assert read_snapshot(access, "octo/none", *WANTED) is None
    github.fail_next("POST", "/graphql$", 502, body="<html>")
    assert read_snapshot(access, "octo/calc", *WANTED) is None
