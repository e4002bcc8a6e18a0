"""Tests of the commits that a run makes in the host's clone, and of how it recognizes them."""

from dataclasses import replace
from pathlib import Path

import pytest

from resolver.config.settings import Settings
from resolver.errors import PolicyViolation
from resolver.git.push import branch_name
from resolver.git.workspace import Workspace
from resolver.github.local_issue import local_trigger
from resolver.models.pull_request import PullRequestContext
from resolver.models.run import Patch, Publication, ResolvedConflict
from resolver.publishing.branches import create_branch
from resolver.publishing.commit_builder import (
    CommitBuilder,
    PublishRequest,
    PushedChange,
)
from tests.git.scenario import commit_all, make_repository, plain_git, write
from tests.github import reports
from tests.parts.memory_forge import MemoryForge


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
        publish_request(), MemoryForge(tmp_path, "main"), replace(workspace, pull=pull)
    )


def merge_of(builder: CommitBuilder) -> tuple[PullRequestContext, str]:
    """Return the pull request, and a merge commit of its base into its head."""
    pull, workspace = builder.workspace.pull, builder.workspace
    assert pull is not None
    return pull, builder.commit(workspace.tree(pull.head), pull.head, pull.base)


def commit_tree(builder: CommitBuilder, tree: str, message: str, *parents: str) -> str:
    """Return a commit that somebody else has made."""
    roles = ("AUTHOR", "COMMITTER")
    mona = {f"GIT_{role}_{key}": "mona" for role in roles for key in ("NAME", "EMAIL")}
    options = [word for parent in parents for word in ("-p", parent.strip())]
    args = ("commit-tree", *options, "-m", message, tree)
    return builder.workspace.git.run(*args, environment=mona).decode().strip()


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
    copied = commit_tree(builder, tree, message, pull.head, *([pull.base] if is_merge else []))
    assert builder.find_own_commit(pull.head, copied) is None


@pytest.mark.parametrize("is_same_message", [True, False])
def test_a_signed_commit_is_recognized_by_its_message(
    builder: CommitBuilder, is_same_message: bool
) -> None:
    """GitHub has made it, with an author and a time of its own."""
    pull, git = builder.workspace.pull, builder.workspace.git
    assert pull is not None
    tree = builder.workspace.tree(pull.head)
    own = builder.commit(tree, pull.head)
    message = git.text("log", "-1", "--format=%B", own)
    if not is_same_message:
        message = message.replace("\n", "\nMore.\n", 1)
    signed = commit_tree(builder, tree, message, pull.head)
    request = replace(builder.request, settings=Settings(signed_commits=True))
    found = replace(builder, request=request).find_own_commit(pull.head, signed)
    assert found == (signed if is_same_message else None)


def test_a_tree_that_was_not_judged_is_judged_on_the_commit_that_it_was_made_for(
    builder: CommitBuilder,
) -> None:
    """The policy was enforced for the run's own patch relative to its base, and to no other."""
    pull, workspace = builder.workspace.pull, builder.workspace
    assert pull is not None
    settings = Settings(protected_paths=("*.py",))
    judged = Patch(base=pull.head, tree=workspace.tree(pull.base))
    request = replace(builder.request, settings=settings, patch=judged)
    assert replace(builder, request=request).apply(pull.head, pull.head)
    other = judged.model_copy(update={"base": pull.base})
    unjudged = replace(builder, request=replace(request, patch=other))
    with pytest.raises(PolicyViolation):
        unjudged.apply(pull.head, pull.head)


@pytest.mark.parametrize("untouched", [True, False])
def test_a_conflict_that_the_agent_did_not_edit_makes_the_pull_request_a_draft(
    untouched: bool,
) -> None:
    conflicts = (ResolvedConflict(path="a.py", kept="merged", untouched=untouched),)
    publication = Publication(branch="half", commit="c" * 40, conflicts=conflicts)
    verified = replace(publish_request(), report=reports.report(unverified=None))
    report = verified.report_with(PushedChange(publication, notices=("late",)))
    assert (report.unverified, report.draft) == (
        ("unedited_conflict", True) if untouched else (None, False)
    )
    assert report.patch is not None and report.patch.commit == publication.commit
    assert report.warnings[-1] == "late"


def test_a_branch_that_somebody_creates_during_the_run_is_left_alone(tmp_path: Path) -> None:
    """The names of branches are listed when the run starts, and the push finds the new one."""
    source = make_repository(tmp_path / "source")
    workspace = Workspace.clone(str(source), tmp_path / "clone.git")
    trigger = local_trigger(source, run="run-1", login="ann", at=reports.WHEN)
    task = reports.task(trigger).model_copy(update={"source": str(source)})
    request = replace(publish_request(), trigger=trigger, task=task)
    builder = CommitBuilder(request, None, workspace)
    commit = builder.commit(workspace.tree(workspace.base), workspace.base)
    preferred = branch_name(task.title, task.trigger.subject, kind="issue")
    plain_git(source, "update-ref", f"refs/heads/{preferred}", workspace.base)  # somebody else's
    branch, pushed = create_branch(builder, commit)
    assert (branch, pushed.is_new_branch) == (f"{preferred}-2", True)
    assert plain_git(source, "rev-parse", preferred) == workspace.base
    assert plain_git(source, "rev-parse", branch) == commit
