"""Tests of the branch and commit that work on an issue starts from."""

from dataclasses import replace
from pathlib import Path

import pytest

from resolver.git.workspace import Workspace
from resolver.models.pull_request import OpenPullRequest
from resolver.models.run import Trigger
from resolver.runs.prepare import _at_starting_branch
from resolver.runs.stages import PreparedRun
from tests.parts.github import GitHubServer
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import prepared_run, run_request

NAME = "octo/demo"
BRANCH = "agent/issue-12-it-breaks"


class FollowingForge(MemoryForge):
    """A forge with this open pull request of Resolver for the issue."""

    def __init__(self, pull: OpenPullRequest | None) -> None:
        super().__init__(Path("issue.md"), "main")
        self._pull = pull

    def of_issue(self, trigger: Trigger, prefix: str) -> OpenPullRequest | None:  # type: ignore[override]
        assert prefix == "agent/issue-12-"
        return self._pull


class Repository:
    """A repository with an open pull request whose branch got a commit after the request."""

    def __init__(self, github: GitHubServer, folder: Path) -> None:
        github.create_repository(NAME, {"calc.py": "1\n"})
        github.commit(NAME, "next", {"calc.py": "next\n"})
        head = github.commit(NAME, BRANCH, {"calc.py": "2\n"})
        number = github.create_pull(NAME, BRANCH, "Fix it", "").number
        github.commit(NAME, BRANCH, {"late.py": "1\n"})
        self.pull = OpenPullRequest(
            number=number,
            title="Fix it",
            branch=BRANCH,
            head=head,
            base_branch="main",
            moved="it was pushed to after the request",
        )
        url = f"{github.server_url}/{NAME}.git"
        workspace = Workspace.clone(url, folder / "clone.git", branch="main")
        prepared = prepared_run(run_request(folder))
        self.prepared = replace(prepared, workspace=workspace)
        self.main = workspace.base

    def started(self, pull: OpenPullRequest | None, prepared: PreparedRun) -> PreparedRun:
        return _at_starting_branch(prepared, FollowingForge(pull))


@pytest.fixture
def repository(github: GitHubServer, tmp_path: Path) -> Repository:
    return Repository(github, tmp_path)


def test_it_starts_from_the_open_pull_request_as_it_was_at_the_request(
    repository: Repository,
) -> None:
    started = repository.started(repository.pull, repository.prepared)
    workspace, task = started.workspace, started.task
    assert (workspace.base, workspace.branch) == (repository.pull.head, BRANCH)
    assert workspace.read("calc.py") == b"2\n" and workspace.read("late.py") is None
    assert workspace.trusted.base == repository.main, "settings come from the default branch"
    assert (task.follows, task.base_branch) == (repository.pull, "main")
    assert task.left_out[-1] == (
        f"pull request #{repository.pull.number}: it was pushed to after the request"
    )


def test_without_one_it_starts_from_the_branch_of_the_settings(repository: Repository) -> None:
    prepared = repository.prepared
    assert repository.started(None, prepared) == prepared
    settings = prepared.settings.model_copy(update={"base_branch": "next"})
    started = repository.started(None, replace(prepared, settings=settings))
    assert started.workspace.read("calc.py") == b"next\n"
    assert (started.task.base_branch, started.task.follows) == ("next", None)


def test_a_question_on_an_issue_is_answered_from_the_default_branch(
    repository: Repository,
) -> None:
    settings = repository.prepared.settings.model_copy(update={"agent": "ReadOnlyAgent"})
    prepared = replace(repository.prepared, settings=settings)
    assert repository.started(repository.pull, prepared) == prepared


def test_a_pull_request_from_the_branch_of_the_settings_is_not_added_to(
    repository: Repository,
) -> None:
    prepared = repository.prepared
    settings = prepared.settings.model_copy(update={"base_branch": BRANCH})
    started = repository.started(repository.pull, replace(prepared, settings=settings))
    assert started.task.follows is None and started.task.base_branch == BRANCH
