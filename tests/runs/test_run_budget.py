"""How much a run may cost at most, from plain values of the stages."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from resolver.config.settings import load_settings
from resolver.events.lifecycle import Resumed
from resolver.events.run_log import RunLog
from resolver.runs.pipeline import _limit_overrides
from resolver.runs.prepare import _within_budget
from resolver.runs.reporting import build_report, max_extended_limits
from resolver.runs.resuming.resume import change_limits
from resolver.runs.stages import AcceptedRun, PreparedRun, StageValues
from tests.runs.plain_values import prepared_run, run_log, run_request
from tests.trace import sample


def run_with(left: float, folder: Path) -> PreparedRun:
    """Return a run that may cost 2 US dollars, with `left` of the operator's budget."""
    request = replace(run_request(folder), budget=left)
    settings = load_settings({"max_budget": 2.0}, {})
    return prepared_run(request, settings=settings, max_cost=float("inf"))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    """A log that has cost 0.3 US dollars, and that `run-1` has just resumed."""
    with run_log(tmp_path / "events.jsonl") as opened:
        opened.stream.add(sample.started())
        opened.stream.add(sample.reply("Look at it.", cost=0.3))
        opened.stream.add(Resumed(version="1", run="run-1"))
        yield opened


@pytest.mark.parametrize(("left", "quota_left"), [(0.35, 1.0), (1.0, 0.35)])
def test_the_budget_is_cut_to_the_least_that_is_left_and_the_run_says_so(
    tmp_path: Path, left: float, quota_left: float
) -> None:
    prepared = run_with(left, tmp_path)
    cut = _within_budget(prepared, AcceptedRun(quota_left=quota_left), None)
    assert (cut.settings.max_budget, cut.max_cost) == (0.35, 0.35)
    report = build_report(StageValues(cut.request, cut.settings).with_value(cut))
    [warning] = [text.replace("\\", "") for text in report.warnings]
    assert "The budget of this run was reduced to $0.35" in warning


def test_what_is_left_comes_on_top_of_what_the_log_has_cost(tmp_path: Path, log: RunLog) -> None:
    cut = _within_budget(run_with(0.25, tmp_path), AcceptedRun(), log)
    assert cut.max_cost == pytest.approx(0.55)
    assert max_extended_limits(cut).max_budget == pytest.approx(0.55), "no comment grants more"
    change_limits(log, _limit_overrides(cut, log))
    assert log.state.limits.max_budget == pytest.approx(0.55)
