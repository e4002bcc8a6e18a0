"""What a terminal shows when a run has ended, from plain values of the stages."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from resolver.github.comments.report import RunFailure
from resolver.models.pull_request import PublishedReview
from resolver.models.run import Publication
from resolver.runs.reporting import build_report, outcome_file_of, print_result
from resolver.runs.stages import ExecutedRun, OpenedLog, PublishedRun, RunResult, StageValues
from tests.github import reports
from tests.runs.plain_values import executed_values, run_log, run_request
from tests.trace import sample


def printed(
    values: StageValues,
    *,
    failure: RunFailure | None = None,
    publishable: bool = False,
    exit_code: int = 1,
    colors: bool = False,
) -> str:
    result = RunResult(
        request=values.request,
        report=build_report(values, failure),
        outcome_file=outcome_file_of(values, values.publication, failure, exit_code),
        publication=values.publication,
        exit_code=exit_code,
        outcome=values.outcome,
        failure=failure,
        publishable=publishable,
    )
    shown = io.StringIO()
    print_result(result, Console(file=shown, width=80, force_terminal=colors))
    return shown.getvalue()


@pytest.fixture
def values(tmp_path: Path) -> StageValues:
    return executed_values(run_request(tmp_path))


def test_a_change_that_is_kept_can_be_published_unless_the_policy_has_refused_it(
    values: StageValues,
) -> None:
    command = f"resolver publish {values.request.output.folder}"
    outage = RunFailure(kind="error", what="GitHub is down", cause="forge_down")
    policy = RunFailure(kind="policy", what="it adds a credential")
    assert command in printed(values, failure=outage, publishable=True)
    refused = printed(values, failure=policy, publishable=True)
    assert "it adds a credential" in refused and command not in refused
    assert command not in printed(values, failure=outage)


def test_a_review_is_shown_with_its_page_or_else_with_its_file(values: StageValues) -> None:
    for url in ("", "https://github.com/octo/demo/pull/12#pullrequestreview-3"):
        publication = Publication(review=PublishedReview(commit="a" * 40, url=url))
        shown = printed(values.with_value(PublishedRun(publication)), exit_code=0)
        assert f"Review        {url or values.request.output.folder / 'review.md'}\n" in shown
    assert "Review  " not in printed(values, exit_code=0)


@pytest.mark.parametrize(
    ("agent", "is_printed"), [("ReadOnlyAgent", True), ("CodeActAgent", False)]
)
def test_an_answer_is_printed_itself(
    values: StageValues, tmp_path: Path, agent: str, is_printed: bool
) -> None:
    with run_log(tmp_path / "events.jsonl") as log:
        log.stream.add(sample.started().model_copy(update={"agent": agent}))
        executed = ExecutedRun(reports.outcome("Because of the sign."), reports.patch())
        shown = printed(values.with_value(OpenedLog(log)).with_value(executed), exit_code=0)
    assert ("Because of the sign." in shown) is is_printed
    assert ("Changed " in shown) is not is_printed
