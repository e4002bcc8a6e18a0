"""What the report of a run says, from plain values of the stages."""

from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir

import pytest

from resolver.events.observations import AgentStateChanged
from resolver.github.comments.report import RunFailure
from resolver.github.text.markers import Ending
from resolver.models.pull_request import PullRequestContext
from resolver.models.run import (
    ExportedChange,
    Patch,
    Publication,
    RunState,
    UnverifiedReason,
)
from resolver.runs.reporting import (
    build_report,
    can_be_published,
    find_missing_verification,
    is_answer_run,
    is_review_run,
    outage_of,
    outcome_file_of,
    publishing_route,
)
from resolver.runs.stages import ExecutedRun, OpenedLog, PublishedRun, StageValues
from tests.github import reports
from tests.runs.plain_values import (
    PULL,
    executed_values,
    published_values,
    run_log,
    run_request,
)
from tests.trace import sample


@pytest.fixture
def values(tmp_path: Path) -> StageValues:
    return executed_values(run_request(tmp_path))


@pytest.fixture
def values_with_change(values: StageValues, tmp_path: Path) -> StageValues:
    """The values of a run whose output folder holds its change."""
    bundle = tmp_path / "new.bundle"
    bundle.write_bytes(b"x")
    change = ExportedChange(commit="c" * 40, tree="b" * 40, bundle=bundle)
    values.request.output.keep_change(change)
    return values


def test_a_report_has_the_warnings_of_all_stages_and_of_the_pull_request(
    values: StageValues,
) -> None:
    values = replace(values, request=replace(values.request, notices=("Resumed",)))
    published = published_values(values)
    noted = PULL.model_copy(update={"notes": ("No reviewer",)})
    publication = published.publication.model_copy(update={"pull_request": noted})
    report = build_report(values.with_value(PublishedRun(publication, ("Base moved",))))
    assert report.warnings == ("Resumed", "Base moved", "No reviewer")
    assert report.ending is Ending.PULL_REQUEST


def test_a_comment_names_no_folder_of_the_machine(values: StageValues) -> None:
    """The operator's log and outcome.json keep the whole path."""
    log, temporary = values.request.output.log.absolute(), f"{gettempdir()}/resolver-x1/clone.git"
    cache = values.request.host.cache / "toolbox"
    failure = RunFailure(kind="error", what=f"{log}, line 3: no", next_step=f"look at {cache}")
    values = replace(values, request=replace(values.request, notices=(f"{temporary} is lost",)))
    report = build_report(values, failure)
    assert report.failure is not None
    assert report.failure.what == "output/events.jsonl, line 3: no"
    assert report.failure.next_step == "look at toolbox"
    assert report.warnings == ("clone.git is lost",)
    assert outcome_file_of(values, Publication(), failure, 1).reason == failure.what


@pytest.mark.parametrize(
    ("state", "task_completed", "has_verification", "expected"),
    [
        (RunState.FINISHED, True, True, ""),
        (RunState.FINISHED, True, False, "not_verified"),
        (RunState.FINISHED, False, True, "unfinished"),
        (RunState.LIMIT, True, True, "unfinished"),
    ],
)
def test_only_complete_and_verified_work_lacks_nothing(
    values: StageValues,
    state: RunState,
    task_completed: bool,
    has_verification: bool,
    expected: UnverifiedReason,
) -> None:
    outcome = reports.outcome(state=state, task_completed=task_completed)
    values = values.with_value(ExecutedRun(outcome, reports.patch()))
    if has_verification:
        values = values.with_value(reports.verification())
    assert find_missing_verification(values) == expected


def test_an_outage_is_found_in_the_failure_the_outcome_and_the_comment(
    values: StageValues,
) -> None:
    provider = RunFailure(kind="error", what="no reply", cause="provider_down")
    assert outage_of(values, provider) == "provider_down"
    ended = reports.outcome(state=RunState.ERROR, because="rate_limit")
    assert outage_of(values.with_value(ExecutedRun(ended, reports.patch())), None) == "rate_limit"
    assert outage_of(values, None, "forge_down") == "forge_down"
    refused = RunFailure(kind="error", what="rejected", cause="branch_protected")
    assert outage_of(values, refused) == ""


def test_a_kept_change_can_be_published_unless_the_policy_would_refuse_it_with_any_settings(
    values_with_change: StageValues,
) -> None:
    with run_log(values_with_change.request.output.log) as log:
        log.stream.add(sample.started())
        values = values_with_change.with_value(OpenedLog(log))
        refusal = RunFailure(kind="policy", what="a protected file", settings_decide=True)
        assert publishing_route(values, refusal) is None, "the agent has not finished"
        log.stream.add(AgentStateChanged(state=RunState.FINISHED))
    lasting = refusal.model_copy(update={"settings_decide": False})
    assert publishing_route(values, refusal) == "folder"
    assert publishing_route(values, lasting) is None
    kept = replace(values, request=replace(values.request, can_be_continued=True))
    assert publishing_route(kept, refusal) == "comment"
    taken_back = RunFailure(kind="stopped", what="the comment was deleted", withdrawn=True)
    assert publishing_route(kept, taken_back) is None


def test_a_change_is_public_once_it_has_its_branch_and_its_pull_request(
    values_with_change: StageValues,
) -> None:
    with run_log(values_with_change.request.output.log) as log:
        log.stream.add(sample.started())
        log.stream.add(AgentStateChanged(state=RunState.FINISHED))
        values = values_with_change.with_value(OpenedLog(log))
    failure = RunFailure(kind="error", what="GitHub is down", cause="forge_down")
    only_branch = values.with_value(PublishedRun(Publication(branch="agent/12")))
    assert can_be_published(values, None) and can_be_published(values, failure)
    assert can_be_published(only_branch, failure), "its pull request is missing"
    assert not can_be_published(only_branch, None)
    assert not can_be_published(published_values(values), failure)


def test_an_answer_that_came_with_a_change_is_published_with_it(values: StageValues) -> None:
    """`why not fix this?`: the agent answers, and leaves its edit. Nothing is thrown away."""
    outcome = reports.outcome(declined="answered")
    unchanged = Patch(base="a" * 40, tree="b" * 40)
    assert is_answer_run(values.with_value(ExecutedRun(outcome, unchanged)))
    assert not is_answer_run(values.with_value(ExecutedRun(outcome, reports.patch())))


@pytest.mark.parametrize(
    ("agent", "has_pull_request", "is_review"),
    [
        ("ReviewerAgent", True, True),
        ("ReviewerAgent", False, False),
        ("ReadOnlyAgent", True, False),
        ("CodeActAgent", True, False),
    ],
)
def test_a_review_is_what_the_reviewer_says_of_a_pull_request(
    tmp_path: Path, agent: str, has_pull_request: bool, is_review: bool
) -> None:
    assert not is_review_run(None)
    pull = PullRequestContext(number=12, head="a" * 40, base_branch="main")
    opening = sample.started()
    task = opening.task.model_copy(update={"pull": pull if has_pull_request else None})
    with run_log(tmp_path / "events.jsonl") as log:
        log.stream.add(opening.model_copy(update={"agent": agent, "task": task}))
        assert is_review_run(log) is is_review
