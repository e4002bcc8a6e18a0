"""The end of a run whose process has lost its lease: another process continues it."""

from dataclasses import replace
from pathlib import Path

import pytest

from resolver.errors import LeaseLost
from resolver.runs.output import Output
from resolver.runs.pipeline import run_pipeline
from resolver.runs.wiring.sandbox import ForgeTokens
from resolver.storage.earlier_runs import OUTCOME
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import run_request


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
