"""Tests of pushing commits onto branches over HTTP, and of refused pushes."""

from pathlib import Path

import pytest

from resolver.errors import BranchTaken, PushRefused, WorkspaceError
from resolver.git.git import Credential
from resolver.git.push import fetch_tip, push_commit, write_commit
from resolver.git.workspace import Workspace
from tests.git.scenario import AT, US
from tests.parts.clock import PassingTime
from tests.parts.github import GitHubServer

NAME = "octo/demo"


class Pushing:
    """A repository with a branch `work`, a clone of its tip, and a token."""

    def __init__(self, github: GitHubServer, folder: Path) -> None:
        self.github = github
        github.create_repository(NAME, {"a.txt": "a\n"})
        self.tip = github.commit(NAME, "work", {"b.txt": "b\n"})
        self.url = f"{github.server_url}/{NAME}.git"
        self.credential = Credential(github.server_url, github.token_for("octo"))
        self.workspace = Workspace.clone(self.url, folder / "clone.git", branch="work")

    def made(self, parent: str, message: str = "ours", tree: str = "") -> str:
        tree = tree or self.workspace.tree(self.tip)
        return write_commit(self.workspace.git, parent, tree, message, US, AT, ())

    def push(self, commit: str, previous: str, branch: str = "work") -> None:
        push_commit(self.workspace.git, commit, branch, self.url, self.credential, previous)

    @property
    def there(self) -> str | None:
        return self.github.repository(NAME).git.tip("work")


@pytest.fixture
def pushing(github: GitHubServer, tmp_path: Path) -> Pushing:
    return Pushing(github, tmp_path)


def test_a_branch_is_moved_forward_once(pushing: Pushing) -> None:
    made = pushing.made(pushing.tip)
    for _ in range(2):
        pushing.push(made, pushing.tip)
    assert pushing.there == made


def test_a_concurrent_push_is_never_overwritten(pushing: Pushing) -> None:
    made = pushing.made(pushing.tip)
    pushed_commit = pushing.github.commit(NAME, "work", {"c.txt": "c\n"})
    with pytest.raises(BranchTaken):
        pushing.push(made, pushing.tip)
    assert pushing.there == pushed_commit


def test_a_commit_that_is_no_descendant_is_not_sent(pushing: Pushing) -> None:
    start = pushing.github.repository(NAME).git.tip("main")
    assert start is not None
    made = pushing.made(start)
    with pytest.raises(WorkspaceError, match="does not build on"):
        pushing.push(made, pushing.tip)
    assert pushing.there == pushing.tip


def test_a_deleted_branch_is_not_created_again(pushing: Pushing) -> None:
    made = pushing.made(pushing.tip)
    pushing.github.repository(NAME).git.git("update-ref", "-d", "refs/heads/work")
    with pytest.raises(WorkspaceError):
        pushing.push(made, pushing.tip)
    assert pushing.there is None


def test_a_protected_branch_is_refused_with_a_reason(pushing: Pushing) -> None:
    pushing.github.protect_branch(NAME, "work")
    with pytest.raises(PushRefused, match="protected") as refused:
        pushing.push(pushing.made(pushing.tip), pushing.tip)
    assert refused.value.branch_only and "rules" in refused.value.next_step


def test_a_token_without_write_access_is_refused_with_a_reason(pushing: Pushing) -> None:
    pushing.github.add_user("eve")
    pushing.credential = Credential(pushing.github.server_url, pushing.github.token_for("eve"))
    with pytest.raises(PushRefused, match="may not push there") as refused:
        pushing.push(pushing.made(pushing.tip), pushing.tip)
    assert "contents: write" in refused.value.next_step


def test_missing_workflow_permission_is_named(pushing: Pushing) -> None:
    pushing.github.add_user("app[bot]", "Bot")
    token = pushing.github.token_for("app[bot]", NAME)
    pushing.credential = Credential(pushing.github.server_url, token)
    with_workflow = pushing.github.commit(NAME, "other", {".github/workflows/a.yml": "on: push\n"})
    tip = fetch_tip(pushing.workspace.git, pushing.url, "other", None)
    assert tip == with_workflow
    pushing.github.repository(NAME).git.git("update-ref", "-d", "refs/heads/other")
    made = pushing.made(pushing.tip, tree=pushing.workspace.tree(tip))
    with pytest.raises(PushRefused, match="workflow file") as refused:
        pushing.push(made, pushing.tip)
    assert "workflows: write" in refused.value.next_step
    assert token not in refused.value.what


@pytest.mark.parametrize("after", [False, True])
def test_a_push_is_retried_while_the_server_fails(pushing: Pushing, after: bool) -> None:
    made = pushing.made(pushing.tip)
    time = PassingTime()
    pushing.github.fail_next("GET", "git-receive-pack|info/refs", 502, times=5)
    pushing.github.fail_next("POST", "git-receive-pack", 502, times=2)
    pushing.github.cut_next("POST", "git-receive-pack", after=after)
    git, url = pushing.workspace.git, pushing.url
    retries = time.retries()
    push_commit(git, made, "work", url, pushing.credential, pushing.tip, retries)
    assert pushing.there == made
    assert time.waits != []


def test_a_refused_push_is_not_retried(pushing: Pushing) -> None:
    made = pushing.made(pushing.tip)
    time = PassingTime()
    pushing.github.fail_next("POST", "git-receive-pack", 403, times=9)
    git, url = pushing.workspace.git, pushing.url
    with pytest.raises(PushRefused):
        push_commit(git, made, "work", url, pushing.credential, pushing.tip, time.retries())
    assert time.waits == []
