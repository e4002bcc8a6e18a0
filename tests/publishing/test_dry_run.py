"""Tests of what a run that publishes nothing says of its pull request."""

from pathlib import Path

from resolver.models.run import Publication
from resolver.publishing.commit_builder import PublishRequest
from resolver.publishing.pull_request import describe_unpublished
from resolver.runs.reporting import build_report
from resolver.runs.stages import ExecutedRun
from tests.github import reports
from tests.runs.plain_values import executed_values, run_request


def test_a_dry_run_has_the_text_of_the_pull_request_and_no_branch(tmp_path: Path) -> None:
    outcome = reports.outcome("Fix the parser\n\nIt was broken.")
    values = executed_values(run_request(tmp_path))
    values = values.with_value(ExecutedRun(outcome, reports.patch()))
    trigger = values.request.trigger
    request = PublishRequest(
        run="run-1",
        trigger=trigger,
        task=reports.task(trigger),
        patch=reports.patch(),
        settings=values.settings,
        committed_at=reports.WHEN,
        credential=lambda: None,
        report=build_report(values),
    )
    found = describe_unpublished(request)
    assert found.pull_request is not None
    assert found.pull_request.title == "Fix the parser"
    assert "It was broken." in found.pull_request.body
    assert found == Publication(pull_request=found.pull_request)
