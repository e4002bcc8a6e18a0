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


ADDED = PUBLISHED.model_copy(update={"how": "added"})


@pytest.mark.parametrize(
    ("find", "publication", "kind", "expected"),
    [
        (find_finished_work, PUBLISHED, "new", "earlier"),
        (find_finished_work, PUBLISHED, "resumed", "its own"),
        # A commit on an existing branch is found again when it is pushed.
        (find_finished_work, ADDED, "resumed", None),
        (find_finished_work, PUBLISHED, "dry", None),
        (find_finished_work, None, "new", None),
        (find_pushed_work, ADDED, "new", "earlier"),
        (find_pushed_work, ADDED, "resumed", None),
        (find_pushed_work, ADDED, "dry", None),
    ],
)
def test_published_work_is_taken_over_and_a_resumed_run_publishes_what_is_missing(
    tmp_path: Path,
    find: Callable[[RunRequest, Forge], PublishedRun | None],
    publication: Publication | None,
    kind: str,
    expected: str | None,
) -> None:
    request = replace(run_request(tmp_path), resume=kind == "resumed", publish=kind != "dry")
    if request.resume:
        request.output.log.write_text("{}\n")
    found = find(request, EarlierWorkForge(tmp_path, publication))
    assert (found is None) is (expected is None)
    if found is not None:
        is_earlier = expected == "earlier"
        assert (found.is_earlier, found.publication.repeated) == (is_earlier, is_earlier)
        assert found.warnings == ()


@pytest.mark.parametrize("find", [find_finished_work, find_pushed_work])
def test_replies_of_a_review_that_may_be_missing_are_pointed_out(
    tmp_path: Path, find: Callable[[RunRequest, Forge], PublishedRun | None]
) -> None:
    request = run_request(tmp_path)
    trigger = request.trigger.model_copy(update={"kind": TriggerKind.REVIEW_COMMENT})
    found = find(replace(request, trigger=trigger), EarlierWorkForge(tmp_path, PUBLISHED))
    assert found is not None and found.is_earlier
    [warning] = found.warnings
    assert "some of them may not have a reply" in warning
