"""Tests of how a run ends in which no agent works."""

from dataclasses import dataclass, field
from errno import ENOSPC
from pathlib import Path
from typing import Any

from resolver.github.client.snapshot import SnapshotQuery
from resolver.github.text.markers import Ending
from resolver.models.run import Publication, Task, Trigger
from resolver.runs.pipeline import run_pipeline
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import PULL, run_request


@dataclass
class FullForge(MemoryForge):
    """A forge during whose reading the disk of this machine becomes full."""

    def read(self, trigger: Trigger) -> Task:
        raise OSError(ENOSPC, f"No space left for {trigger.key}", "/var/clone")


@dataclass
class ForgeWithPushedWork(MemoryForge):
    """A forge on which an earlier attempt has pushed its commit without a final comment.

    requests: which requests for branches and commits it got.
    """

    requests: list[str] = field(default_factory=list)

    def snapshot(self, query: SnapshotQuery) -> None:
        self.requests.append(f"refs such as {query.ref_prefix}")

    def pushed(self, trigger: Trigger, run: str, prefix: str) -> Any:
        self.requests.append(f"commits for {trigger.key}")
        return Publication(how="added", branch="agent/12", commit="d" * 40, pull_request=PULL)

    def read(self, trigger: Trigger) -> Task:
        raise AssertionError(f"the work of {trigger.key} is done again")


def test_a_refusal_is_a_comment(tmp_path: Path) -> None:
    forge = MemoryForge(tmp_path / "issue.md", "main", level="read")
    result = run_pipeline(run_request(tmp_path), forge)
    assert result.exit_code == 5
    assert result.failure is not None and "no write access" in result.failure.what
    assert len(forge.reports) == 1


def test_a_disk_that_is_full_in_the_middle_is_reported_with_what_to_do(tmp_path: Path) -> None:
    forge = FullForge(tmp_path / "issue.md", "main")
    result = run_pipeline(run_request(tmp_path), forge, lambda _: None)
    assert result.exit_code == 1
    [report] = forge.reports
    assert report.ending is Ending.ERROR and report.failure is not None
    assert report.failure.what.endswith("Resolver is full")
    assert report.failure.next_step == "free some disk space, then ask again"


def test_a_run_whose_commit_was_pushed_is_only_reported(tmp_path: Path) -> None:
    forge = ForgeWithPushedWork(tmp_path / "issue.md", "main")
    result = run_pipeline(run_request(tmp_path), forge, lambda _: None)
    assert result.exit_code == 0
    assert forge.requests == ["commits for issue_comment:77"]
    [report] = forge.reports
    assert report.ending is Ending.PULL_REQUEST and report.pull_request == PULL
    assert report.publication.repeated and report.publication.commit == "d" * 40
