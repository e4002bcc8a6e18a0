"""Tests of the name of a run's new branch."""

from dataclasses import replace
from pathlib import Path

from resolver.git.push import branch_name
from resolver.git.workspace import Workspace
from resolver.github.local_issue import local_trigger
from resolver.publishing.branches import create_branch
from resolver.publishing.commit_builder import CommitBuilder
from tests.git.scenario import make_repository, plain_git
from tests.github import reports
from tests.publishing.test_commit_builder import publish_request


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
