"""Tests of the gates that an update of a pull request passes before and after the agent works."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest

from resolver.errors import PolicyViolation, Refused
from resolver.git.merge import commit_unfinished_merge, merge
from resolver.git.workspace import Workspace
from resolver.models.pull_request import PullRequestContext, PullRequestSource
from resolver.models.run import Command, Patch
from resolver.runs.pipeline import _publish, _update_branch, _work_and_publish
from resolver.runs.stages import ExecutedRun, PreparedRun, StageValues
from tests.git.test_merge import Clone, Files
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.publishing.test_push_to_pull_request import ForgeWithPull
from tests.runs.plain_values import prepared_run, run_log, run_request

CI = ".github/workflows/ci.yml"


@dataclass(frozen=True)
class Update:
    """A run at git's merge with a conflict in a workflow and in a file, and the repository."""

    clone: Clone
    prepared: PreparedRun

    def check(self, files: Files, task_completed: bool = True) -> None:
        """Judge the merge in which the agent has written these files."""
        base = self.prepared.workspace.base
        patch = Patch(base=base, tree=self.clone.tree_with(base, files))
        outcome = reports.outcome(task_completed=task_completed)
        executed = ExecutedRun(outcome, patch)
        # A dry run passes the same gate.
        request = replace(self.prepared.request, publish=False)
        prepared = replace(self.prepared, request=request)
        values = replace(
            replace(StageValues(request, prepared.settings), prepared=prepared), executed=executed
        )
        forge = MemoryForge(self.clone.source / "issue.md", "main")
        with run_log(request.output.folder / "events.jsonl") as log:
            list(_publish(values, prepared, executed, log, forge))


@pytest.fixture
def update(tmp_path: Path) -> Update:
    clone = Clone(tmp_path, {CI: "on: push\n", "a.txt": "a\n"})
    head = clone.commit("ours", {CI: "on: ours\n", "a.txt": "ours\n"})
    base = clone.commit("theirs", {CI: "on: theirs\n", "a.txt": "theirs\n"})
    merged = merge(clone.git, head, base)
    pull = PullRequestContext(
        number=12,
        head=head,
        base=base,
        base_branch="main",
        head_branch="half",
        head_repository="zoe/demo",
        is_fork=True,
        conflicts=(CI, "a.txt"),
    )
    git = clone.git
    unfinished = commit_unfinished_merge(git, merged, head, base)
    # The commit is made in the bare clone, and the tests commit in the source.
    git.run("push", "-q", str(clone.source), f"{unfinished}:refs/heads/unfinished")
    workspace = Workspace(git.git_dir, str(clone.source), unfinished, "pull/12", pull=pull)
    request = run_request(tmp_path)
    trigger = request.trigger.model_copy(
        update={"command": Command.UPDATE, "is_pull_request": True}
    )
    request = replace(request, trigger=trigger)
    task = reports.task(trigger, pull=pull)
    return Update(clone, prepared_run(request, workspace, task=task))


RESOLVED: Files = {CI: "on: theirs\n", "a.txt": "ours\ntheirs\n"}


def test_a_resolved_merge_may_take_the_workflow_of_the_base(update: Update) -> None:
    update.check(RESOLVED)


@pytest.mark.parametrize(
    ("files", "task_completed", "problem"),
    [
        ({CI: "on: theirs\n"}, True, "unresolved conflicts are left in a.txt"),
        (RESOLVED, False, "the agent says that not all conflicts are resolved"),
        ({**RESOLVED, CI: "on: ours\n"}, True, CI),
        ({**RESOLVED, CI: "on: theirs and ours\n"}, True, CI),
    ],
    ids=["a marker", "unfinished", "the workflow of the head", "another workflow"],
)
def test_another_resolution_is_not_published(
    update: Update, files: Files, task_completed: bool, problem: str
) -> None:
    with pytest.raises(PolicyViolation) as refused:
        update.check(files, task_completed)
    assert problem in refused.value.what


@pytest.mark.parametrize("kind", ["agent", "clean_merge"])
def test_an_update_that_can_not_be_published_is_refused_before_the_work(
    update: Update, tmp_path: Path, kind: Literal["agent", "clean_merge"]
) -> None:
    source = PullRequestSource(
        is_open=True, repository="zoe/demo", branch="half", is_fork=True, can_modify=False
    )
    forge = ForgeWithPull(tmp_path, "main", pull_source=source)
    prepared = replace(update.prepared, update=kind)
    values = replace(StageValues(prepared.request, prepared.settings), prepared=prepared)
    stages = (
        _update_branch(values, prepared, forge)
        if kind == "clean_merge"
        else _work_and_publish(values, prepared, forge, tmp_path)
    )
    with pytest.raises(Refused, match="does not let maintainers edit"):
        next(stages)
    assert not prepared.request.output.has_events
