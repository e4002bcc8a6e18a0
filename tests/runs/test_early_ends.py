"""Tests of how a run ends in which no agent works."""

from dataclasses import dataclass, field, replace
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import Settings
from resolver.errors import LeaseLost
from resolver.github.client.snapshot import SnapshotQuery
from resolver.github.text.markers import Ending
from resolver.models.run import Publication, Task, Trigger
from resolver.runs.output import Output
from resolver.runs.pipeline import run_pipeline
from resolver.runs.stages import RunRequest
from resolver.runs.wiring.models import preload_models
from resolver.runs.wiring.sandbox import ForgeTokens
from resolver.storage.earlier_runs import OUTCOME
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


@pytest.fixture
def job(tmp_path: Path) -> RunRequest:
    """A run on an issue that does not exist, which ends before it asks a model."""
    return replace(run_request(tmp_path, LLM_MODEL="gpt-4o"), publish=False)


def test_a_run_that_may_start_loads_its_model(job: RunRequest, tmp_path: Path) -> None:
    loaded: list[Settings] = []
    run_pipeline(job, MemoryForge(tmp_path / "issue.md", "main"), loaded.append)
    assert [model.model for model in loaded] == ["gpt-4o"]


def test_a_refused_run_loads_nothing(job: RunRequest, tmp_path: Path) -> None:
    loaded: list[Settings] = []
    result = run_pipeline(job, MemoryForge(tmp_path / "issue.md", level="read"), loaded.append)
    assert result.exit_code == 5
    assert loaded == []


@pytest.mark.parametrize("model", ["replay:events.jsonl", "scripted:replies.yml"])
def test_a_recording_or_a_script_needs_no_library(
    job: RunRequest, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "replies.yml").write_text("[Done]")
    begun: list[object] = []
    settings = job.load_settings({}).model_copy(update={"model": model})
    preload_models(settings, lambda: begun.append(model))
    assert begun == []
    preload_models(job.load_settings({}), lambda: begun.append("live"))
    assert begun == ["live"]


@pytest.mark.parametrize("has_lease", [True, False])
def test_a_run_without_a_lease_ends_without_a_comment_and_without_an_outcome(
    tmp_path: Path, has_lease: bool
) -> None:
    def require_lease() -> None:
        if not has_lease:
            raise LeaseLost("the lease of executor 1 has ended")

    request = run_request(tmp_path, LLM_MODEL="gpt-4o")
    tokens = ForgeTokens(require_lease=require_lease)
    request = replace(request, host=replace(request.host, tokens=tokens))
    forge = MemoryForge(tmp_path / "issue.md")
    if has_lease:
        # there is no such issue, so the run fails
        assert run_pipeline(request, forge, lambda _: None).exit_code != 0
    else:
        with pytest.raises(LeaseLost):
            run_pipeline(request, forge, lambda _: None)
        assert forge.reports == []
    assert (tmp_path / "output" / OUTCOME).exists() == has_lease
    Output(tmp_path / "output", resume=True).close()  # the folder is not locked any more
