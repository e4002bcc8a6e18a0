"""When the model's library is loaded in the background: for runs that may start and ask a live
model."""

from dataclasses import replace
from pathlib import Path

import pytest

from resolver.config.settings import Settings
from resolver.runs.pipeline import run_pipeline
from resolver.runs.stages import RunRequest
from resolver.runs.wiring.models import preload_models
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import run_request


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
