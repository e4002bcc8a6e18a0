"""Tests of what the server does around the pipeline of a run: its budget, its cost, its outages.

A stage of plain values stands for the pipeline, so that no run clones, starts a sandbox or asks a
model. Its final comment is a real one.
"""

import json
import socket
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore
from pydantic import SecretStr

from resolver.config.settings import Settings
from resolver.entrypoints.webhook.request_runner import RequestRunner
from resolver.entrypoints.webhook.run_commands import RunCommands
from resolver.errors import Cause, QuotaReached, ResolverError
from resolver.events.lifecycle import Resumed
from resolver.events.observations import AgentStateChanged
from resolver.events.run_log import RunLog
from resolver.events.stream import utc_now
from resolver.github.comments.report import RunFailure, failure_from_error
from resolver.github.events.checks import check_key
from resolver.github.events.quota_ledger import CostTotal
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Command, Publication, PullRequest, RunState, Trigger, TriggerKind
from resolver.runs.common import run_id, trigger_for_target
from resolver.runs.conversation.comments import Conclusion, conclude
from resolver.runs.pipeline import run_pipeline
from resolver.runs.quotas.admission import reserve_quota
from resolver.runs.stages import (
    ExecutedRun,
    PublishedRun,
    RunRequest,
    RunResult,
    StageValues,
)
from resolver.storage.database import parse_database_url
from resolver.storage.earlier_runs import OUTCOME
from resolver.storage.quota_table import QuotaTable
from resolver.storage.run_index import RunIndex
from resolver.storage.run_store import RunStore
from tests.github import reports
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.trace import sample
from tests.webhook.serving import Forge as GitHub
from tests.webhook.serving import started

CRASHED = "the server crashed 8 times during this run"

RETRY = timedelta(hours=1)
NEXT_ATTEMPT = "You don't need to do anything"


class Stage:
    """Stands for the pipeline. Each run costs `cost` by its log and ends as it is told."""

    def __init__(self) -> None:
        self.cost: float | None = 0.2
        self.failure: RunFailure | None = None
        self.state = RunState.FINISHED
        self.pull: PullRequest | None = None
        self.requests: list[RunRequest] = []

    def __call__(self, request: RunRequest, forge: GitHubForge) -> RunResult:
        if request.ended_by is not None or request.control.is_stopped:
            return run_pipeline(request, forge)
        self.requests.append(request)
        values = StageValues(request, request.load_settings({}))
        try:
            accepted = reserve_quota(request, values.settings, forge)
        except QuotaReached as error:
            conclusion = Conclusion(failure_from_error(error), error.exit_code, error.is_silent)
            return conclude(values, conclusion, forge)
        values = replace(values, accepted=accepted)
        log = RunLog(request.output.log, lambda event: event, utc_now, copy=request.log_copy)
        source = values.settings.clone_url(request.trigger.repository)
        task = reports.task(request.trigger, source=source)
        opening = sample.started().model_copy(update={"run": request.run, "task": task})
        log.stream.add(Resumed(version="1", run=request.run) if request.has_log else opening)
        log.stream.add(sample.reply("Done.", self.cost))
        state = RunState.ERROR if self.failure else self.state
        log.stream.add(AgentStateChanged(state=state))
        outcome = reports.outcome(state=state, cost=log.state.cost)
        values = replace(values, log=log)
        values = replace(values, executed=ExecutedRun(outcome, reports.patch()))
        if self.pull is not None:
            values = replace(values, published=PublishedRun(Publication(pull_request=self.pull)))
            request.observe(values)
        return conclude(values, Conclusion(self.failure, 1 if self.failure else 0), forge)


class Scenario:
    """Requests in one repository, and what executes them."""

    def __init__(self, github: GitHubServer, folder: Path) -> None:
        self.forge, self.folder, self.stage = GitHub(github), folder, Stage()
        self.name = self.forge.repository("octo/calc")
        self.url = parse_database_url(f"sqlite:///{folder}/resolver.db")
        self.table, self.store = QuotaTable(self.url), RunStore(MemoryStore())
        self.environment = {
            "HOME": str(folder),
            "LLM_MODEL": "openai/scripted",
            "GITHUB_TOKEN": self.forge.token,
            **github.addresses,
            "RESOLVER_PACE": '{"write_interval": 0, "final_comment": 0, "github_writes": 0, '
            '"first_wait": 0.01}',
        }
        self.issue, self.trigger = self.request()

    def runner(self, **environment: str) -> RequestRunner:
        """Return that of one process."""
        return RequestRunner(
            {**self.environment, **environment},
            {},
            self.store,
            RunIndex(self.url),
            quota_table=self.table,
            outage_retry=RETRY,
            pipeline=self.stage,
        )

    def request(self) -> tuple[Issue, Trigger]:
        """Return a new issue, and a request of mona's on it."""
        issue = self.forge.issue(self.name, "none")
        return issue, self.request_on(issue)

    def request_on(
        self, issue: Issue, text: str = "@agent please fix this", author: str = "mona"
    ) -> Trigger:
        comment = self.forge.github.add_comment(issue, text, author)
        payload = self.forge.github.event_issue_comment(comment)
        found = trigger_for_target(Settings(), "issue_comment", payload)
        assert isinstance(found, Trigger)
        return found

    def stop(self) -> Trigger:
        """Return the stop of a person after the request."""
        later = {"at": utc_now() + RETRY, "key": "stop", "command": Command.STOP}
        return self.trigger.model_copy(update=later)

    def total(self) -> CostTotal:
        """Return the costs of the month, which has had runs of one repository."""
        [total] = self.table.totals(utc_now())
        return total

    def comment(self, issue: Issue | None = None) -> str:
        """Return our comment on the issue, which is one."""
        [comment] = self.forge.final_comments(issue or self.issue)
        return comment.body.replace("\\", "")


def run_of(trigger: Trigger) -> str:
    return run_id(trigger.key, trigger.at)


def outcome_of(scenario: Scenario, trigger: Trigger) -> dict[str, Any]:
    outcome: dict[str, Any] = json.loads(scenario.store.file(run_of(trigger), OUTCOME) or b"")
    return outcome


@pytest.fixture
def scenario(github: GitHubServer, tmp_path: Path) -> Scenario:
    return Scenario(github, tmp_path)


def test_a_run_is_counted_once_with_what_its_log_says(scenario: Scenario) -> None:
    runner = scenario.runner()
    assert runner.execute(started(scenario.trigger)).state == "finished"
    again = runner.execute(started(scenario.trigger, 2))
    assert (again.state, again.exit_code) == ("repeated", 0)
    assert len(scenario.stage.requests) == 1
    total = scenario.total()
    assert (total.repository, total.runs, total.active_runs) == ("octo/calc", 1, 0)
    assert total.cost == pytest.approx(0.2)
    assert outcome_of(scenario, scenario.trigger)["cost"] == pytest.approx(0.2)


@pytest.mark.parametrize("author", ["mona", "eve"])
def test_a_run_that_is_given_up_says_so_to_people_who_may_start_work(
    scenario: Scenario, author: str
) -> None:
    scenario.forge.github.add_user("eve")
    trigger = scenario.request_on(scenario.issue, author=author)
    for attempt in (6, 7):
        scenario.runner().execute(started(trigger, attempt), CRASHED)
    comment = scenario.comment()
    assert (CRASHED in comment and "ask again" in comment) == (author == "mona")
    assert ("write access" in comment) == (author == "eve")
    assert outcome_of(scenario, trigger)["state"] == ("error" if author == "mona" else "refused")


@pytest.mark.parametrize(("author", "expected"), [("mona", ["eyes"]), ("eve", [])])
def test_a_request_that_waits_gets_a_reaction_if_its_run_will_start(
    scenario: Scenario, author: str, expected: list[str]
) -> None:
    scenario.forge.github.add_user("eve")
    trigger = scenario.request_on(scenario.issue, author=author)
    for _ in range(2):  # by two processes
        scenario.runner().acknowledge(trigger)
    assert not scenario.forge.own_comments(scenario.issue)
    assert [each.content for each in scenario.issue.comments[-1].reactions] == expected


def outage(cause: Cause) -> RunFailure:
    return RunFailure(kind="error", what="no answer", cause=cause)


def test_an_outage_is_reported_once_and_the_run_is_resumed_after_it(scenario: Scenario) -> None:
    runner, began = scenario.runner(), utc_now()
    scenario.stage.failure = outage("provider_down")
    for attempt in (1, 2):
        with pytest.raises(ResolverError) as raised:
            runner.execute(started(scenario.trigger, attempt, outage_began=began))
        assert raised.value.cause == "provider_down"
        comment = scenario.comment()
        assert NEXT_ATTEMPT in comment and f"{began + RETRY:%Y-%m-%d %H:%M} UTC" in comment
        assert "Ask again" not in comment and "`@agent continue`" not in comment
    scenario.stage.failure = None
    assert runner.execute(started(scenario.trigger, 3, outage_began=began)).exit_code == 0
    assert NEXT_ATTEMPT not in scenario.comment()
    assert [request.resume for request in scenario.stage.requests] == [False, True, True]
    assert len({request.run for request in scenario.stage.requests}) == 1


def test_an_outage_that_outlasts_the_retries_is_reported_like_any_failure(
    scenario: Scenario, caplog: pytest.LogCaptureFixture
) -> None:
    scenario.stage.failure = outage("provider_down")
    began = utc_now() - RETRY
    done = scenario.runner().execute(started(scenario.trigger, 9, outage_began=began))
    assert done.exit_code == 1
    comment = scenario.comment()
    assert NEXT_ATTEMPT not in comment and "continue" in comment
    place = f"{scenario.trigger.repository}#{scenario.trigger.number}"
    assert f"run {run_of(scenario.trigger)} for {place}: error: no answer" in caplog.messages


def test_a_run_whose_result_github_does_not_take_is_repeated(scenario: Scenario) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    down = dict.fromkeys(("GITHUB_API_URL", "GITHUB_SERVER_URL", "GITHUB_GRAPHQL_URL"), nobody)
    with pytest.raises(ResolverError) as raised:
        scenario.runner(**down).execute(started(scenario.trigger))
    assert raised.value.cause == "forge_down"
    assert scenario.runner().execute(started(scenario.trigger, 2)).exit_code == 0
    assert scenario.comment()


def test_a_stop_between_two_attempts_replaces_the_text_about_the_next_one(
    scenario: Scenario,
) -> None:
    runner = scenario.runner()
    scenario.stage.failure = outage("provider_down")
    with pytest.raises(ResolverError):
        runner.execute(started(scenario.trigger))
    again = started(scenario.trigger, 2, outage_began=utc_now())
    done = runner.execute(again, commands=RunCommands(lambda: [scenario.stop()]))
    assert done.state == "stopped" and len(scenario.stage.requests) == 1
    assert NEXT_ATTEMPT not in scenario.comment() and "stopped by mona" in scenario.comment()


def check_failed(scenario: Scenario, head: str = "") -> Trigger:
    """A check of the default branch has failed on its newest commit, or on `head`."""
    head = head or str(scenario.forge.github.repository(scenario.name).git.tip("main"))
    return scenario.trigger.model_copy(
        update={
            "key": check_key(scenario.name, head), "kind": TriggerKind.CHECK_FAILED,
            "number": None, "head": head, "branch": "main", "check": "CI", "comment_id": None,
        }
    )  # fmt: skip


def test_a_failed_check_on_an_old_commit_is_ignored_unless_its_run_was_interrupted(
    scenario: Scenario,
) -> None:
    request = check_failed(scenario, head="a" * 40)
    done = scenario.runner().execute(started(request))
    assert (done.state, done.exit_code) == ("ignored", 0)
    assert not scenario.stage.requests
    scenario.runner().execute(started(request, 2))
    [run] = scenario.stage.requests
    assert run.trigger.number not in {None, scenario.issue.number}


def test_a_failed_check_is_looked_at_again_after_an_outage(scenario: Scenario) -> None:
    scenario.forge.github.fail_next("GET", "/issues$", 502, times=50)
    with pytest.raises(ResolverError) as raised:
        scenario.runner().execute(started(check_failed(scenario)))
    assert raised.value.cause == "forge_down"


def test_a_request_to_continue_gets_the_log_of_the_last_run(scenario: Scenario) -> None:
    runner = scenario.runner()
    scenario.stage.state = RunState.LIMIT
    runner.execute(started(scenario.trigger))
    first = run_of(scenario.trigger)
    scenario.forge.github.advance(5)
    again = scenario.request_on(scenario.issue, "@agent continue, and use pytest -x")
    runner.execute(started(again))
    continuation = scenario.stage.requests[-1].continuation
    assert continuation is not None and continuation.run == first
    assert "use pytest -x" in continuation.message and continuation.by == "mona"
    runs = [request.run for request in scenario.stage.requests]
    earlier, later = [b"".join(scenario.store.lines(run)) for run in runs]
    assert later.startswith(earlier) and len(later) > len(earlier)
    assert scenario.total().cost == pytest.approx(0.4), "the replies of the first run count once"


def test_an_approval_after_the_end_of_the_run_continues_from_its_log_once(
    scenario: Scenario,
) -> None:
    runner = scenario.runner()
    early = scenario.request_on(scenario.issue, "@agent approve")
    done = runner.execute(started(early))
    assert (done.state, done.exit_code) == ("nothing", 0), "no run waits"
    scenario.stage.state = RunState.AWAITING_CONFIRMATION
    runner.execute(started(scenario.trigger))
    scenario.forge.github.advance(5)
    scenario.stage.state = RunState.FINISHED
    approval = scenario.request_on(scenario.issue, "@agent approve")
    assert runner.applies_to_run(approval)
    runner.execute(started(approval))
    continuation = scenario.stage.requests[-1].continuation
    assert continuation is not None and continuation.by == "mona"
    scenario.forge.github.advance(5)
    late = scenario.request_on(scenario.issue, "@agent approve")
    assert runner.execute(started(late)).state == "nothing", "the run has gone on"
    assert len(scenario.stage.requests) == 2


def test_the_pull_request_of_a_run_leads_to_its_conversation_before_the_final_comment(
    scenario: Scenario,
) -> None:
    scenario.stage.pull = PullRequest(title="Mend it", body="", number=90, url="https://x/90")
    runner = scenario.runner()
    known: list[int | None] = []

    def execute(request: RunRequest, forge: GitHubForge) -> RunResult:
        observe = request.observe

        def observed(values: StageValues) -> None:
            observe(values)
            known.append(runner.index.issue_of(scenario.name, 90))

        return scenario.stage(replace(request, observe=observed), forge)

    replace(runner, pipeline=execute).execute(started(scenario.trigger))
    assert known == [scenario.issue.number]


def test_a_run_has_a_page_only_if_people_can_log_in(scenario: Scenario) -> None:
    public = {"RESOLVER_PUBLIC_URL": "https://r.example.org"}
    runner = scenario.runner(**public, RESOLVER_APP_CLIENT_SECRET="client-secret")
    settings = runner.settings()
    with_app = settings.model_copy(update={"app_id": "7", "app_private_key": SecretStr("key")})
    assert runner._page_of("1", with_app) == "https://r.example.org/runs/1"
    assert runner._page_of("1", settings) == scenario.runner(**public)._page_of("1", with_app) == ""
