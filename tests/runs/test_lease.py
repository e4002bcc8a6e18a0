"""The end of a run whose process has lost its lease: another process continues it."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from resolver.config.settings import load_settings
from resolver.errors import LeaseLost
from resolver.github.comments.report import Report
from resolver.runs.common import command_line_trigger, open_host
from resolver.runs.output import Output
from resolver.runs.pipeline import run_pipeline
from resolver.runs.stages import RunRequest
from resolver.runs.wiring.sandbox import ForgeTokens
from resolver.storage.earlier_runs import OUTCOME
from tests.parts.memory_forge import MemoryForge


class RecordingForge(MemoryForge):
    """A forge that records the final comments."""

    def __init__(self, issue: Path) -> None:
        super().__init__(issue, "main")
        self.reports: list[Report] = []

    def comment(self, report: Report, seconds: float | None = None) -> str:
        self.reports.append(report)
        return super().comment(report, seconds)


@pytest.mark.parametrize("has_lease", [True, False])
def test_a_run_without_a_lease_ends_without_a_comment_and_without_an_outcome(
    tmp_path: Path, has_lease: bool
) -> None:
    def require_lease() -> None:
        if not has_lease:
            raise LeaseLost("the lease of executor 1 has ended")

    environment = {
        "HOME": str(tmp_path),
        "LLM_MODEL": "gpt-4o",
        "RESOLVER_PACE": '{"github_writes": 0}',
    }
    output = Output(tmp_path / "output")
    request = RunRequest(
        trigger=command_line_trigger("octo/calc", 1, datetime(2026, 1, 1, tzinfo=UTC)),
        run="1",
        output=output,
        load_settings=lambda repository: load_settings({}, environment, repository),
        host=replace(open_host(environment), tokens=ForgeTokens(require_lease=require_lease)),
    )
    forge = RecordingForge(tmp_path / "issue.md")
    if has_lease:
        # there is no such repository, so the run fails
        assert run_pipeline(request, forge, lambda _: None).exit_code != 0
    else:
        with pytest.raises(LeaseLost):
            run_pipeline(request, forge, lambda _: None)
        assert forge.reports == []
    assert (tmp_path / "output" / OUTCOME).exists() == has_lease
    Output(tmp_path / "output", resume=True).close()  # the folder is not locked any more
