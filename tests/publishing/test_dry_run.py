"""Tests of what a run that publishes nothing says of its pull request."""

from pathlib import Path

from resolver.publishing.pull_request import render_pull_request
from resolver.runs.reporting import build_report
from resolver.runs.stages import ExecutedRun
from tests.github import reports
from tests.runs.plain_values import executed_values, run_request


def test_a_dry_run_has_the_text_of_the_pull_request_and_no_branch(tmp_path: Path) -> None:
    outcome = reports.outcome("Fix the parser\n\nIt was broken.")
    values = executed_values(run_request(tmp_path))
    values = values.with_value(ExecutedRun(outcome, reports.patch()))
    pull = render_pull_request(build_report(values))
    assert pull.title == "Fix the parser"
    assert "It was broken." in pull.body
    assert (pull.number, pull.url) == (None, None)
