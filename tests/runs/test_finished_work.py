"""Tests of what a run uses of earlier work on the same request."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolver.github.forge import Forge
from resolver.models.run import Publication, Trigger, TriggerKind
from resolver.runs.prepare import find_finished_work, find_pushed_work
from resolver.runs.stages import PublishedRun, RunRequest
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import PULL, run_request

PUBLISHED = Publication(branch="agent/12", commit="d" * 40, pull_request=PULL)


class EarlierWorkForge(MemoryForge):
    """A forge on which an earlier run with the same key has published something."""

    def __init__(self, folder: Path, publication: Publication | None) -> None:
        super().__init__(folder / "issue.md", "main")
        self._publication = publication

    def find_publication(self, trigger: Trigger) -> Publication | None:
        return self._publication

    def pushed(self, trigger: Trigger, run: str, prefix: str) -> Any:
        return self._publication


@pytest.fixture
def request_on_issue(tmp_path: Path) -> RunRequest:
    return run_request(tmp_path)


def resumed(request: RunRequest) -> RunRequest:
    request.output.log.write_text("{}\n")
    return replace(request, resume=True)


def test_a_new_run_leaves_published_work_as_it_is(
    request_on_issue: RunRequest, tmp_path: Path
) -> None:
    found = find_finished_work(request_on_issue, EarlierWorkForge(tmp_path, PUBLISHED))
    assert found is not None and found.is_earlier and found.publication.repeated


def test_a_resumed_run_publishes_what_is_missing(
    request_on_issue: RunRequest, tmp_path: Path
) -> None:
    request, forge = resumed(request_on_issue), EarlierWorkForge(tmp_path, PUBLISHED)
    found = find_finished_work(request, forge)
    assert found is not None and not found.is_earlier and not found.publication.repeated


def test_a_resumed_run_looks_for_a_commit_on_an_existing_branch_again_when_it_pushes(
    request_on_issue: RunRequest, tmp_path: Path
) -> None:
    added = EarlierWorkForge(tmp_path, PUBLISHED.model_copy(update={"how": "added"}))
    assert find_finished_work(resumed(request_on_issue), added) is None


@pytest.mark.parametrize("find", [find_finished_work, find_pushed_work])
def test_replies_of_a_review_that_may_be_missing_are_pointed_out(
    request_on_issue: RunRequest,
    tmp_path: Path,
    find: Callable[[RunRequest, Forge], PublishedRun | None],
) -> None:
    kind = TriggerKind.REVIEW_COMMENT
    trigger = request_on_issue.trigger.model_copy(update={"kind": kind})
    request = replace(request_on_issue, trigger=trigger)
    found = find(request, EarlierWorkForge(tmp_path, PUBLISHED))
    assert found is not None and found.is_earlier
    [warning] = found.warnings
    assert "some of them may not have a reply" in warning


def test_a_commit_without_a_final_comment_is_used_unless_the_run_is_resumed_or_dry(
    request_on_issue: RunRequest, tmp_path: Path
) -> None:
    added = PUBLISHED.model_copy(update={"how": "added"})
    forge = EarlierWorkForge(tmp_path, added)
    found = find_pushed_work(request_on_issue, forge)
    assert found is not None and found.is_earlier and found.publication.repeated
    assert found.warnings == ()
    assert find_pushed_work(replace(request_on_issue, publish=False), forge) is None
    assert find_pushed_work(resumed(request_on_issue), forge) is None
