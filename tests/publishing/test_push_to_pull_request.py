"""Tests of which branches of pull requests are pushed to, and of what is published instead."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import Settings
from resolver.git.workspace import Workspace
from resolver.github.client.accounts import ACTIONS_LOGIN
from resolver.models.pull_request import PullRequestContext, PullRequestSource
from resolver.publishing.branches import BranchUnavailable
from resolver.publishing.commit_builder import CommitBuilder
from resolver.publishing.push_to_pull_request import (
    published_change,
    push_url,
    refresh_pull_request,
)
from tests.parts.memory_forge import MemoryForge
from tests.publishing.test_commit_builder import publish_request

COMMIT = "c" * 40
PULL = PullRequestContext(
    number=2, head="a" * 40, base_branch="release", head_branch="half", default_branch="main"
)


@dataclass
class ForgeWithPull(MemoryForge):
    """A forge that has read the branch of the pull request just now."""

    pull_source: PullRequestSource | None = None

    def source(self, number: int) -> PullRequestSource:
        assert number == 12 and self.pull_source is not None
        return self.pull_source


def builder_for(workspace: Workspace, **settings: Any) -> CommitBuilder:
    request = replace(publish_request(), settings=Settings(**settings))
    return CommitBuilder(request, MemoryForge(workspace.folder, "main"), workspace)


def refreshed(source: dict[str, Any], **settings: Any) -> CommitBuilder:
    """The builder after the branch was read, which is of this repository unless it says else."""
    values = {"is_open": True, "repository": "octo/demo", "branch": "half", "is_fork": False}
    where = {name: value for name, value in source.items() if name != "login"}
    forge = ForgeWithPull(
        login=source.get("login", "resolver[bot]"),
        pull_source=PullRequestSource.model_validate(values | where),
    )
    pull = PULL.model_copy(update={"number": 12})
    workspace = Workspace(Path(), "source", "a" * 40, "half", pull=pull)
    return refresh_pull_request(replace(builder_for(workspace, **settings), optional_forge=forge))


FORK = {"repository": "zoe/calc", "is_fork": True, "can_modify": True}


def test_the_branch_of_a_fork_is_pushed_to_in_the_fork() -> None:
    of_fork, own = refreshed(FORK), refreshed({})
    assert push_url(of_fork) == "https://github.com/zoe/calc.git"
    assert push_url(own) == own.request.task.source
    publications = [published_change(builder, COMMIT, "pushed") for builder in (of_fork, own)]
    assert [publication.repository for publication in publications] == ["zoe/calc", ""]
    assert [publication.commit_url for publication in publications] == [
        f"https://github.com/zoe/calc/commit/{COMMIT}",
        f"https://github.com/octo/demo/commit/{COMMIT}",
    ]


@pytest.mark.parametrize(
    ("source", "settings", "reason", "branch_exists", "next_step"),
    [
        ({"is_open": False}, {}, "it has been merged or closed", False, ""),
        ({"is_protected": True}, {}, "its branch half is protected", True, ""),
        ({"branch": "main"}, {}, "work is merged into main, and Resolver never", True, ""),
        ({"branch": "develop"}, {"base_branch": "develop"}, "never pushes there", True, ""),
        ({**FORK, "repository": ""}, {}, "its repository no longer exists", False, ""),
        (
            {**FORK, "can_modify": False},
            {},
            "does not let maintainers edit",
            True,
            "ask its author",
        ),
        ({**FORK, "login": ACTIONS_LOGIN}, {}, "the branch is in a fork", True, ""),
    ],
)
def test_a_branch_that_may_not_be_pushed_to_is_refused_with_the_reason(
    source: dict[str, Any],
    settings: dict[str, str],
    reason: str,
    branch_exists: bool,
    next_step: str,
) -> None:
    with pytest.raises(BranchUnavailable) as refused:
        refreshed(source, **settings)
    assert reason in refused.value.why
    assert refused.value.branch_exists is branch_exists
    assert (refused.value.next_step or "").startswith(next_step)
    assert bool(refused.value.next_step) == bool(next_step)
