"""What the report of a run says, from plain values of the stages."""

import io
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
from rich.console import Console

from resolver.config.settings import load_settings
from resolver.events.lifecycle import ModelReplied, Resumed, ServiceReplied
from resolver.events.observations import AgentStateChanged
from resolver.events.run_log import RunLog
from resolver.github.comments.report import RunFailure
from resolver.github.text.markers import Ending
from resolver.models.run import (
    Completion,
    ExportedChange,
    Patch,
    Publication,
    PublicationMethod,
    RunState,
    UnverifiedReason,
)
from resolver.runs.pipeline import _exit_code, _limit_overrides
from resolver.runs.prepare import _within_budget
from resolver.runs.reporting import (
    build_report,
    can_be_published,
    find_missing_verification,
    is_answer_run,
    max_extended_limits,
    outage_of,
    outcome_file_of,
    print_result,
    publishing_route,
)
from resolver.runs.resuming.resume import change_limits
from resolver.runs.stages import (
    AcceptedRun,
    ExecutedRun,
    PreparedRun,
    PublishedRun,
    RunResult,
    StageValues,
)
from tests.github import reports
from tests.runs.plain_values import (
    PULL,
    prepared_run,
    published_values,
    run_log,
    run_request,
)
from tests.trace import sample


@pytest.fixture
def finished(values: StageValues, log: RunLog, tmp_path: Path) -> StageValues:
    """The values of a run that has finished, and whose output folder holds its change."""
    bundle = tmp_path / "new.bundle"
    bundle.write_bytes(b"x")
    change = ExportedChange(commit="c" * 40, tree="b" * 40, bundle=bundle)
    values.request.output.keep_change(change)
    log.stream.add(AgentStateChanged(state=RunState.FINISHED))
    return replace(values, log=log)


def test_a_report_has_the_warnings_of_all_stages_and_of_the_pull_request(
    values: StageValues,
) -> None:
    values = replace(values, request=replace(values.request, notices=("Resumed",)))
    published = published_values(values)
    noted = PULL.model_copy(update={"notes": ("No reviewer",)})
    publication = published.publication.model_copy(update={"pull_request": noted})
    report = build_report(replace(values, published=PublishedRun(publication, ("Base moved",))))
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
        (RunState.FINISHED, True, True, None),
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
    expected: UnverifiedReason | None,
) -> None:
    outcome = reports.outcome(state=state, task_completed=task_completed)
    values = replace(values, executed=ExecutedRun(outcome, reports.patch()))
    if has_verification:
        values = replace(values, verification=reports.verification())
    assert find_missing_verification(values) == expected


def test_an_outage_is_found_in_the_failure_the_outcome_and_the_comment(
    values: StageValues,
) -> None:
    provider = RunFailure(kind="error", what="no reply", cause="provider_down")
    assert outage_of(values, provider) == "provider_down"
    ended = reports.outcome(state=RunState.ERROR, because="rate_limit")
    assert (
        outage_of(replace(values, executed=ExecutedRun(ended, reports.patch())), None)
        == "rate_limit"
    )
    assert outage_of(values, None, "forge_down") == "forge_down"
    refused = RunFailure(kind="error", what="rejected", cause="branch_protected")
    assert outage_of(values, refused) is None


def test_a_kept_change_can_be_published_unless_the_policy_would_refuse_it_with_any_settings(
    finished: StageValues,
) -> None:
    refusal = RunFailure(kind="policy", what="a protected file", settings_decide=True)
    lasting = refusal.model_copy(update={"settings_decide": False})
    assert publishing_route(finished, refusal) == "folder"
    assert publishing_route(finished, lasting) is None
    assert publishing_route(replace(finished, log=None), refusal) is None, "it has not finished"
    kept = replace(finished, request=replace(finished.request, can_be_continued=True))
    assert publishing_route(kept, refusal) == "comment"
    taken_back = RunFailure(kind="stopped", what="the comment was deleted", withdrawn=True)
    assert publishing_route(kept, taken_back) is None


def test_a_change_is_public_once_it_has_its_branch_and_its_pull_request(
    finished: StageValues,
) -> None:
    failure = RunFailure(kind="error", what="GitHub is down", cause="forge_down")
    only_branch = replace(finished, published=PublishedRun(Publication(branch="agent/12")))
    assert can_be_published(finished, None) and can_be_published(finished, failure)
    assert can_be_published(only_branch, failure), "its pull request is missing"
    assert not can_be_published(only_branch, None)
    assert not can_be_published(published_values(finished), failure)


def test_an_answer_that_came_with_a_change_is_published_with_it(values: StageValues) -> None:
    """`why not fix this?`: the agent answers, and leaves its edit. Nothing is thrown away."""
    outcome = reports.outcome(declined="answered")
    unchanged = Patch(base="a" * 40, tree="b" * 40)
    assert is_answer_run(replace(values, executed=ExecutedRun(outcome, unchanged)))
    assert not is_answer_run(replace(values, executed=ExecutedRun(outcome, reports.patch())))


def test_the_model_is_named_without_the_folder_of_its_file(values: StageValues) -> None:
    for kind in ("scripted", "replay"):
        settings = load_settings({}, {"LLM_MODEL": f"{kind}:/home/mona/replies.yml"})
        named = outcome_file_of(replace(values, settings=settings), values.publication, None, 0)
        assert named.model == f"{kind}:replies.yml"


def test_the_outcome_tells_calls_and_cost_of_each_model_and_service(
    values: StageValues, log: RunLog
) -> None:
    large, small = Completion(model="large", cost=0.25), Completion(model="small", cost=None)
    for completion in (large, small, large):
        log.stream.add(ModelReplied(completion=completion))
    log.stream.add(ServiceReplied(service="check", completion=large))
    written = outcome_file_of(replace(values, log=log), values.publication, None, 0)
    by_model = {name: (used.calls, used.cost) for name, used in written.models.items()}
    assert by_model == {"large": (3, 0.75), "small": (1, None)}
    by_service = {name: (s.calls, s.cost, s.priced) for name, s in written.services.items()}
    assert by_service == {"agent": (3, None, 0.5), "check": (1, 0.25, 0.25)}


def test_a_kept_change_is_offered_for_publishing_unless_the_policy_has_refused_it(
    values: StageValues,
) -> None:
    command = f"resolver publish {values.request.output.folder}"
    for kind, publishable, is_offered in (
        ("error", "folder", True), ("error", None, False), ("policy", "folder", False),
    ):  # fmt: skip
        failure = RunFailure(kind=kind, what="it adds a credential")
        outcome = outcome_file_of(values, values.publication, failure, 1)
        report = build_report(values, failure).model_copy(update={"publishable": publishable})
        result = RunResult(
            values.request, report, outcome, values.publication, 1,
            outcome=values.outcome, failure=failure,
        )  # fmt: skip
        console = Console(record=True, file=io.StringIO(), width=80)
        print_result(result, console)
        shown = console.export_text()
        assert failure.what in shown and (command in shown) is is_offered, (kind, publishable)


UNCHANGED = Patch(base="a" * 40, tree="b" * 40)


@pytest.fixture
def prepared_values(values: StageValues) -> StageValues:
    return replace(values, prepared=prepared_run(values.request))


@pytest.mark.parametrize(
    ("state", "changed", "unchanged"),
    [
        (RunState.FINISHED, 0, 3),
        # A change with a reason against it is published, as a draft.
        (RunState.REJECTED, 0, 3),
        (RunState.AWAITING_USER_INPUT, 4, 4),
        (RunState.AWAITING_CONFIRMATION, 4, 4),
        (RunState.LIMIT, 4, 4),
        (RunState.STUCK, 1, 1),
        (RunState.STOPPED, 1, 1),
        (RunState.ERROR, 1, 1),
    ],
)
def test_the_state_of_the_agent_and_its_change_decide(
    prepared_values: StageValues, state: RunState, changed: int, unchanged: int
) -> None:
    outcome = reports.outcome(state=state)
    assert (
        _exit_code(replace(prepared_values, executed=ExecutedRun(outcome, reports.patch())))
        == changed
    )
    assert (
        _exit_code(replace(prepared_values, executed=ExecutedRun(outcome, UNCHANGED))) == unchanged
    )


@pytest.mark.parametrize("agent", ["ReadOnlyAgent", "ReviewerAgent"])
def test_an_answer_and_a_review_need_no_change(
    prepared_values: StageValues, tmp_path: Path, agent: str
) -> None:
    with run_log(tmp_path / "events.jsonl") as log:
        log.stream.add(sample.started().model_copy(update={"agent": agent}))
        prepared_values = replace(prepared_values, log=log)
        for state, expected in ((RunState.FINISHED, 0), (RunState.LIMIT, 4)):
            executed = ExecutedRun(reports.outcome(state=state), UNCHANGED)
            assert _exit_code(replace(prepared_values, executed=executed)) == expected


@pytest.mark.parametrize(
    ("how", "update", "expected"),
    [
        ("unchanged", "agent", 3),
        ("patch", "agent", 1),  # a patch alone is a failure
        ("new", "up_to_date", 0),
    ],
)
def test_the_publication_decides_unless_no_agent_was_needed(
    prepared_values: StageValues, how: PublicationMethod, update: Any, expected: int
) -> None:
    assert prepared_values.prepared is not None
    prepared_values = replace(
        prepared_values, prepared=replace(prepared_values.prepared, update=update)
    )
    patch = reports.patch() if update == "agent" else UNCHANGED
    prepared_values = replace(prepared_values, executed=ExecutedRun(reports.outcome(), patch))
    assert (
        _exit_code(replace(prepared_values, published=PublishedRun(Publication(how=how))))
        == expected
    )


def run_with(left: float, folder: Path) -> PreparedRun:
    """Return a run that may cost 2 US dollars, with `left` of the operator's budget."""
    request = replace(run_request(folder), budget=left)
    settings = load_settings({"max_budget": 2.0}, {})
    return prepared_run(request, settings=settings, max_cost=float("inf"))


@pytest.mark.parametrize(("left", "quota_left"), [(0.35, 1.0), (1.0, 0.35)])
def test_the_budget_is_cut_to_the_least_that_is_left_and_the_run_says_so(
    tmp_path: Path, left: float, quota_left: float
) -> None:
    prepared = run_with(left, tmp_path)
    cut = _within_budget(prepared, AcceptedRun(quota_left=quota_left), None)
    assert (cut.settings.max_budget, cut.max_cost) == (0.35, 0.35)
    report = build_report(replace(StageValues(cut.request, cut.settings), prepared=cut))
    [warning] = [text.replace("\\", "") for text in report.warnings]
    assert "The budget of this run was reduced to $0.35" in warning


def test_what_is_left_comes_on_top_of_what_the_log_has_cost(tmp_path: Path, log: RunLog) -> None:
    log.stream.add(sample.reply("Look at it.", cost=0.3))
    log.stream.add(Resumed(version="1", run="run-1"))
    cut = _within_budget(run_with(0.25, tmp_path), AcceptedRun(), log)
    assert cut.max_cost == pytest.approx(0.55)
    assert max_extended_limits(cut).max_budget == pytest.approx(0.55), "no comment grants more"
    change_limits(log, _limit_overrides(cut, log))
    assert log.state.limits.max_budget == pytest.approx(0.55)
