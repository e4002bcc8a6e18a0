"""Tests of the commits that a run makes in the host's clone, and of how it recognizes them."""

from dataclasses import replace
from pathlib import Path

import pytest

from resolver.config.settings import Settings
from resolver.git.workspace import Workspace
from resolver.github.local_forge import LocalForge
from resolver.models.pull_request import PullRequestContext
from resolver.models.run import UnverifiedReason
from resolver.publishing.commit_builder import CommitBuilder, PublishRequest, is_draft
from tests.git.scenario import commit_all, make_repository, plain_git, write
from tests.github import reports


def publish_request() -> PublishRequest:
    """The request of a run that has changed a file for an issue."""
    return PublishRequest(
        run="run-1",
        trigger=reports.trigger(),
        task=reports.task(reports.trigger()),
        patch=reports.patch(),
        settings=Settings(),
        committed_at=reports.WHEN,
        credential=lambda: None,
        report=reports.report(),
    )


@pytest.fixture
def builder(tmp_path: Path) -> CommitBuilder:
    """A builder for a pull request whose branch and base have each a commit of their own."""
    source = make_repository(tmp_path / "source")
    plain_git(source, "checkout", "-q", "-b", "half")
    write(source, "half.py", "1\n")
    head = commit_all(source, "half")
    plain_git(source, "checkout", "-q", "main")
    write(source, "new.py", "1\n")
    base = commit_all(source, "new")
    workspace = Workspace.clone(str(source), tmp_path / "clone", branch="half")
    workspace.git.run("fetch", "-q", str(source), base)
    pull = PullRequestContext(
        number=2, head=head, base=base, base_branch="main", head_branch="@zoe/fix-#1"
    )
    return CommitBuilder(
        publish_request(), LocalForge(tmp_path, "main"), replace(workspace, pull=pull)
    )


def merge_of(builder: CommitBuilder) -> tuple[PullRequestContext, str]:
    """Return the pull request, and a merge commit of its base into its head."""
    pull, workspace = builder.workspace.pull, builder.workspace
    assert pull is not None
    return pull, builder.commit(workspace.tree(pull.head), pull.head, pull.base)


def test_a_merge_notifies_nobody_whom_a_branch_is_named_for(builder: CommitBuilder) -> None:
    subject = builder.workspace.git.text("log", "-1", "--format=%s", merge_of(builder)[1])
    assert subject.startswith("Merge branch 'main' into ")
    assert "@zoe" not in subject and "#1" not in subject


def test_a_run_recognizes_its_own_merge_below_the_tip(builder: CommitBuilder) -> None:
    pull, merged = merge_of(builder)
    request = replace(builder.request, run="run-2", report=reports.report(run="run-2"))
    tip = replace(builder, request=request).commit(builder.workspace.tree(pull.base), merged)
    assert builder.find_own_commit(pull.head, tip) == merged
    assert builder.find_own_commit(pull.head, pull.head) is None


@pytest.mark.parametrize("is_merge", [True, False])
def test_the_trailer_alone_does_not_make_a_commit_our_own(
    builder: CommitBuilder, is_merge: bool
) -> None:
    pull, made = merge_of(builder)
    git, tree = builder.workspace.git, builder.workspace.tree(pull.head)
    if not is_merge:
        made = builder.commit(tree, pull.head)
    message = git.text("log", "-1", "--format=%B", made)
    roles = ("AUTHOR", "COMMITTER")
    mona = {f"GIT_{role}_{key}": "mona" for role in roles for key in ("NAME", "EMAIL")}
    parents = ("-p", pull.head, *(("-p", pull.base) if is_merge else ()))
    args = ("commit-tree", *parents, "-m", message, tree)
    copied = git.run(*args, environment=mona).decode().strip()
    assert builder.find_own_commit(pull.head, copied) is None


@pytest.mark.parametrize(
    ("setting", "unverified", "expected"),
    [
        ("auto", "", False),
        ("auto", "not_verified", True),
        ("always", "", True),
        ("always", "not_verified", True),
        ("never", "", False),
        ("never", "not_verified", False),
    ],
)
def test_a_pull_request_is_a_draft_as_the_setting_says(
    setting: str, unverified: UnverifiedReason, expected: bool
) -> None:
    assert is_draft(setting, unverified) is expected
