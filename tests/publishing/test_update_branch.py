"""Tests of which resolutions of a merge may be published."""

from pathlib import Path

import pytest

from resolver.errors import PolicyViolation, WorkspaceError
from resolver.git.workspace import Workspace
from resolver.models.pull_request import PullRequestContext
from resolver.models.run import Command, Patch
from resolver.publishing.commit_builder import co_authors, commit_identity
from resolver.publishing.update_branch import (
    plan_update,
    resolved_paths,
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


@pytest.mark.parametrize(
    ("base", "kind", "conflicts"),
    [
        ({}, "up_to_date", ()),
        ({"b.txt": "theirs\n"}, "clean_merge", ()),
        ({"a.txt": "theirs\n"}, "agent", ("a.txt",)),
    ],
)
def test_only_conflicts_need_an_agent(
    tmp_path: Path, base: Files, kind: str, conflicts: tuple[str, ...]
) -> None:
    clone = Clone(tmp_path, {"a.txt": "a\n"})
    head = clone.commit("ours", {"a.txt": "ours\n"})
    tip = clone.commit("theirs", base) if base else clone.start
    pull = PullRequestContext(number=2, head=head, base=tip, base_branch="main", head_branch="half")
    task = reports.task(reports.trigger().model_copy(update={"command": Command.UPDATE}))
    planned = plan_update(task, Workspace(clone.source, "source", head, "half", pull=pull))
    assert planned.kind == kind and planned.workspace.pull is not None
    assert planned.workspace.pull.conflicts == conflicts
    assert conflicts == (planned.task.pull.conflicts if planned.task.pull else ())


@pytest.mark.parametrize(
    ("server", "host"),
    [
        ("https://github.com", "github.com"),
        ("https://git.example.com:8443/", "git.example.com"),
        ("", "github.com"),
    ],
)
def test_a_person_is_named_by_the_address_without_mail_of_their_own_server(
    server: str, host: str
) -> None:
    mona = reports.trigger(actor=reports.Actor(login="mona", id=7))
    [named] = co_authors(mona, server)
    assert (named.name, named.email) == ("mona", f"7+mona@users.noreply.{host}")


def test_the_number_of_the_actions_account_is_known_on_the_public_server_alone() -> None:
    own = commit_identity("github-actions[bot]", None, "https://github.com")
    assert own.email == "41898282+github-actions[bot]@users.noreply.github.com"
    there = commit_identity("github-actions[bot]", None, "https://git.example.com")
    assert there.email == "github-actions[bot]@users.noreply.git.example.com"
