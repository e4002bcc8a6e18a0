"""Tests of which resolutions of a merge may be published."""

from pathlib import Path

import pytest

from resolver.errors import PolicyViolation, WorkspaceError
from resolver.git.workspace import Workspace
from resolver.models.pull_request import PullRequestContext
from resolver.models.run import Command, Patch
from resolver.publishing.update_branch import (
    BranchUpdate,
    plan_update,
    resolved_paths,
    update_outcome,
)
from tests.git.test_merge import Clone, Files
from tests.github import reports

CI = ".github/workflows/ci.yml"


class Resolution:
    """A pull request whose merge has a conflict in a workflow, and the agent's change."""

    def __init__(self, folder: Path) -> None:
        self.clone = Clone(folder, {CI: "on: push\n", "a.txt": "a\n"})
        self.head = self.clone.commit("ours", {CI: "on: ours\n"})
        self.base = self.clone.commit("theirs", {CI: "on: theirs\n"})

    def taken_from_base(self, files: Files, task_completed: bool = True) -> set[bytes]:
        outcome = reports.outcome(task_completed=task_completed)
        patch = Patch(base=self.head, tree=self.clone.tree_with(self.head, files))
        pull = PullRequestContext(number=2, head=self.head, base=self.base, base_branch="main")
        return set(resolved_paths(outcome, patch, self.clone.git, pull))


@pytest.fixture
def resolution(tmp_path: Path) -> Resolution:
    return Resolution(tmp_path)


def test_only_the_bases_own_file_is_taken_from_the_base(resolution: Resolution) -> None:
    assert resolution.taken_from_base({CI: "on: theirs\n"}) == {CI.encode()}
    assert resolution.taken_from_base({CI: "on: ours\n", "a.txt": "b\n"}) == set()
    assert resolution.taken_from_base({CI: "on: theirs # and ours\n"}) == set()


@pytest.mark.parametrize(
    ("text", "task_completed", "what"),
    [
        ("<<<<<<< {head}\n", True, f"unresolved conflicts are left in {CI}"),
        ("on: theirs\n", False, "the agent says that not all conflicts are resolved"),
    ],
)
def test_a_merge_that_is_not_finished_is_not_published(
    resolution: Resolution, text: str, task_completed: bool, what: str
) -> None:
    with pytest.raises(PolicyViolation) as refused:
        resolution.taken_from_base({CI: text.format(head=resolution.head)}, task_completed)
    assert what in refused.value.what


@pytest.mark.parametrize("is_fork", [False, True])
def test_only_a_branch_name_of_this_repository_has_to_be_valid_before_the_work(
    resolution: Resolution, is_fork: bool
) -> None:
    pull = PullRequestContext(
        number=12,
        head=resolution.head,
        base_branch="main",
        head_branch="half\u200b",
        is_fork=is_fork,
    )
    folder = resolution.clone.git.git_dir
    workspace = Workspace(folder, "source", resolution.head, "pull/12", pull=pull)
    task = reports.task(reports.trigger())
    if is_fork:
        assert plan_update(task, workspace).kind == "agent"
        return
    with pytest.raises(WorkspaceError, match="not a valid branch name"):
        plan_update(task, workspace)


class Update:
    """A request to update pull request 2, whose head and base are commits of a clone."""

    def __init__(self, folder: Path) -> None:
        self.clone = Clone(folder, {"a.txt": "a\n"})
        trigger = reports.trigger().model_copy(update={"command": Command.UPDATE})
        self.task = reports.task(trigger)

    def plan(self, head: Files, base: Files) -> BranchUpdate:
        ours = self.clone.commit("ours", head)
        theirs = self.clone.commit("theirs", base) if base else self.clone.start
        pull = PullRequestContext(
            number=2, head=ours, base=theirs, base_branch="main", head_branch="half"
        )
        git_dir = self.clone.git.git_dir
        return plan_update(self.task, Workspace(git_dir, "source", ours, "half", pull=pull))


@pytest.fixture
def update(tmp_path: Path) -> Update:
    return Update(tmp_path)


def test_a_branch_that_has_its_base_is_up_to_date(update: Update) -> None:
    planned = update.plan({"a.txt": "ours\n"}, {})
    assert (planned.kind, planned.task) == ("up_to_date", update.task)


def test_a_merge_without_conflicts_needs_no_agent(update: Update) -> None:
    planned = update.plan({"a.txt": "ours\n"}, {"b.txt": "theirs\n"})
    assert (planned.kind, planned.task) == ("clean_merge", update.task)


def test_an_agent_gets_the_conflicts(update: Update) -> None:
    planned = update.plan({"a.txt": "ours\n"}, {"a.txt": "theirs\n"})
    assert planned.kind == "agent"
    assert planned.workspace.pull is not None and planned.task.pull is not None
    assert planned.workspace.pull.conflicts == planned.task.pull.conflicts == ("a.txt",)


@pytest.mark.parametrize(
    ("kind", "said"),
    [("up_to_date", "already contains"), ("clean_merge", "without conflicts")],
)
def test_an_update_without_an_agent_says_what_was_done(kind: str, said: str) -> None:
    pull = PullRequestContext(number=2, head="a" * 40, base_branch="main", head_branch="half")
    outcome = update_outcome(kind, pull)
    assert said in outcome.message and "main" in outcome.message
    assert outcome.task_completed and outcome.reason == outcome.message
