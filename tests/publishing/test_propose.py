"""Tests of which pull request is opened after a push."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from resolver.errors import ForgeError
from resolver.events.lifecycle import StageCompleted
from resolver.events.log import read_log
from resolver.git.workspace import Workspace
from resolver.github.client.accounts import ACTIONS_LOGIN
from resolver.github.comments.report import Report
from resolver.models.run import Publication, PublicationMethod, PullRequest
from resolver.publishing.commit_builder import CommitBuilder, PushedChange
from resolver.publishing.pull_request import propose, report_pending_checks
from tests.parts.memory_forge import MemoryForge
from tests.publishing.test_commit_builder import publish_request
from tests.runs.plain_values import run_log

PULL = PullRequest(title="Fix it", body="", number=13, url="https://github.com/o/r/pull/13")


class RecordingForge(MemoryForge):
    """A forge that keeps which pull requests it was asked to open."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "issue.md", "main")
        self.asked: list[str] = []

    def open_pull_request(self, report: Report, branch: str, is_new: bool = False) -> PullRequest:
        assert report.task is not None
        self.asked.append(f"open {branch} into {report.task.base_branch}")
        return PULL


@pytest.mark.parametrize(
    ("how", "base", "requests", "stages"),
    [
        ("pushed", None, [], ["half"]),
        ("unchanged", "main", [], []),
        ("separate", "main", ["open half into main"], [PULL.url]),
    ],
)
def test_only_a_branch_of_its_own_gets_a_pull_request(
    tmp_path: Path,
    how: PublicationMethod,
    base: str | None,
    requests: list[str],
    stages: list[str],
) -> None:
    forge = RecordingForge(tmp_path)
    workspace = Workspace(tmp_path, str(tmp_path), "a" * 40, "main")
    pushed = PushedChange(Publication(branch="half", how=how), proposed_base=base)
    with run_log(tmp_path / "events.jsonl") as log:
        log.stage("change", "", 0.0)
        request = replace(publish_request(), log=log)
        list(propose(CommitBuilder(request, forge, workspace), pushed, time.monotonic()))
    logged = [e for e in read_log(tmp_path / "events.jsonl") if isinstance(e, StageCompleted)]
    assert forge.asked == requests
    assert [stage.detail for stage in logged if stage.stage == "published"] == stages


class RefusingForge(MemoryForge):
    """A forge on which no pull request may be opened."""

    def open_pull_request(self, report: Report, branch: str, is_new: bool = False) -> PullRequest:
        raise ForgeError(f"{branch} may not be proposed", "allow it")


def test_a_branch_that_was_pushed_is_known_if_its_pull_request_is_refused(tmp_path: Path) -> None:
    pushed = PushedChange(Publication(branch="agent/12"), proposed_base="main")
    workspace = Workspace(tmp_path, str(tmp_path), "a" * 40, "main")
    forge = RefusingForge(tmp_path / "issue.md", "main")
    steps = propose(CommitBuilder(publish_request(), forge, workspace), pushed, 0.0)
    assert next(steps).publication.branch == "agent/12"
    with pytest.raises(ForgeError, match="agent/12 may not be proposed"):
        next(steps)


@pytest.mark.parametrize(
    ("publication", "login", "expected"),
    [
        (Publication(branch="agent/12"), ACTIONS_LOGIN, 1),
        (Publication(branch="agent/12"), "a[bot]", 0),
        (Publication(branch="agent/12"), "z[bot]", 0),
        (Publication(branch="agent/12", repeated=True), ACTIONS_LOGIN, 0),
        (Publication(how="patch"), ACTIONS_LOGIN, 0),
    ],
)
def test_it_is_said_that_no_checks_start_only_if_a_job_has_pushed_a_branch(
    publication: Publication, login: str, expected: int
) -> None:
    warnings = report_pending_checks(publication, MemoryForge(login=login))
    assert len(warnings) == expected
    assert all("starts no workflows" in warning for warning in warnings)
