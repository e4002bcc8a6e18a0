"""Requests that an outage of GitHub or of the model's provider has stopped."""

import socket
from datetime import timedelta
from pathlib import Path

import pytest

from resolver.config.settings import Settings
from resolver.entrypoints.webhook.database import parse_database_url
from resolver.entrypoints.webhook.deliveries import DeliveryRunner
from resolver.entrypoints.webhook.issue_history import IssueHistories
from resolver.entrypoints.webhook.request_queue import (
    FIRST_RETRY_WAIT,
    MAX_RETRY_WAIT,
    next_retry_wait,
)
from resolver.entrypoints.webhook.run_archive import RunArchive
from resolver.entrypoints.webhook.run_restore import ArchivedRunFolders
from resolver.errors import LeaseLost, ResolverError
from resolver.events.stream import utc_now
from resolver.models.run import Trigger
from resolver.runs.common import run_id, trigger_for_target
from resolver.runs.output import EVENTS, OUTCOME, PATCH
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint, error
from tests.parts.runs import MODEL_KEY
from tests.webhook.serving import FIX, Forge, Plans, plan_of_a_fix, started

RETRY = timedelta(hours=1)


class Scenario:
    """A request of mona's, and the work on it without the queue."""

    def __init__(self, github: GitHubServer, endpoint: ModelEndpoint, folder: Path) -> None:
        self.forge, self.plans, self.folder = Forge(github), Plans(endpoint), folder
        self.issue = self.forge.issue(self.forge.repository("octo/calc"), "fix")
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "LLM_MODEL": "openai/scripted",
            "LLM_API_KEY": MODEL_KEY,
            "LLM_BASE_URL": endpoint.url,
            "RESOLVER_MODEL_OPTIONS": "{retries: 0}",
            "GITHUB_TOKEN": self.forge.token,
            "GITHUB_API_URL": github.api_url,
            "GITHUB_SERVER_URL": github.server_url,
            "GITHUB_GRAPHQL_URL": github.graphql_url,
            "RESOLVER_RUNTIME": "local",
            "RESOLVER_VERIFY": "false",
            "RESOLVER_COMMENT_INTERVAL_SECONDS": "{writes: 0}",
            "RESOLVER_RETRY_SECONDS": "{final_comment: 0}",
        }
        found = trigger_for_target(Settings(), "issue_comment", self.forge.mention(self.issue))
        assert isinstance(found, Trigger)
        self.trigger = found

    def runs(self, machine: str = "", **more: str) -> DeliveryRunner:
        """Those of one machine; machines with a name have an archive in common."""
        url = parse_database_url(f"sqlite:///{self.folder}/resolver.db")
        environment, folder = {**self.environment, **more}, self.folder / "runs" / machine
        return DeliveryRunner(
            environment,
            {},
            folder,
            IssueHistories(url),
            outage_retry=RETRY,
            archived=ArchivedRunFolders(RunArchive(url), folder) if machine else None,
        )

    @property
    def own_comment(self) -> str:
        """Our comment on the issue, which is one."""
        [comment] = self.forge.final_comments(self.issue)
        return comment.body


@pytest.fixture
def scenario(github: GitHubServer, model_endpoint: ModelEndpoint, tmp_path: Path) -> Scenario:
    return Scenario(github, model_endpoint, tmp_path)


def test_an_outage_of_the_provider_is_told_once_and_the_run_goes_on_after_it(
    scenario: Scenario,
) -> None:
    scenario.plans.add("fix", error(503, "overloaded"))
    began = utc_now()
    for attempt in (1, 2):
        with pytest.raises(ResolverError) as outage:
            scenario.runs().work_on(started(scenario.trigger, attempt, outage_began=began))
        assert outage.value.cause == "provider_down"
        assert "You don't need to do anything" in scenario.own_comment
        assert f"{began + RETRY:%Y-%m-%d %H:%M} UTC" in scenario.own_comment
        assert (
            "Ask again" not in scenario.own_comment
            and "`@agent continue`" not in scenario.own_comment
        )
    scenario.plans.add("fix", *plan_of_a_fix())
    done = scenario.runs().work_on(started(scenario.trigger, 3, outage_began=began))
    assert done.exit_code == 0
    assert scenario.forge.done_once(scenario.issue)
    assert "Resolver opened" in scenario.own_comment


def test_a_model_that_hangs_is_an_outage(scenario: Scenario) -> None:
    scenario.plans.add("fix", *plan_of_a_fix(delay=600))
    hurried = {"RESOLVER_MODEL_OPTIONS": "{retries: 0, timeout: 0.5}"}
    with pytest.raises(ResolverError) as outage:
        scenario.runs(**hurried).work_on(started(scenario.trigger, 1))
    assert outage.value.cause == "provider_down"
    assert "You don't need to do anything" in scenario.own_comment
    scenario.plans.add("fix", *plan_of_a_fix())
    done = scenario.runs().work_on(started(scenario.trigger, 2, outage_began=utc_now()))
    assert done.exit_code == 0
    assert scenario.forge.done_once(scenario.issue)


def test_a_run_continues_on_another_machine_and_the_first_one_can_not_write_any_more(
    scenario: Scenario,
) -> None:
    scenario.plans.add("fix", FIX, error(503, "overloaded"))
    began, run = utc_now(), run_id(scenario.trigger.key, scenario.trigger.at)
    first, second = scenario.runs("first"), scenario.runs("second")
    with pytest.raises(ResolverError) as outage:
        first.work_on(started(scenario.trigger, 1, outage_began=began))
    assert outage.value.cause == "provider_down"
    before = (first.folder / run / EVENTS).read_bytes()
    scenario.plans.add("fix", *plan_of_a_fix())

    done = second.work_on(started(scenario.trigger, 2, outage_began=began))

    assert done.exit_code == 0, scenario.own_comment
    assert scenario.forge.done_once(scenario.issue)
    assert (second.folder / run / EVENTS).read_bytes().startswith(before)
    with pytest.raises(LeaseLost):
        first.work_on(started(scenario.trigger, 1, outage_began=began))
    assert (first.folder / run / EVENTS).read_bytes() == before
    shown = first.folders.folder_of(run)
    assert shown == first.folder / run
    for name in (EVENTS, OUTCOME, PATCH):
        assert (shown / name).read_bytes() == (second.folder / run / name).read_bytes()


def test_a_stop_between_two_tries_replaces_the_words_about_the_next_one(scenario: Scenario) -> None:
    scenario.plans.add("fix", error(503, "overloaded"))
    with pytest.raises(ResolverError):
        scenario.runs().work_on(started(scenario.trigger, 1))
    stop = scenario.trigger.model_copy(update={"at": utc_now() + RETRY, "key": "stop"})
    scenario.runs().threads.stopped(stop)
    done = scenario.runs().work_on(started(scenario.trigger, 2, outage_began=utc_now()))
    assert done.state == "stopped"
    assert (
        "You don't need to do anything" not in scenario.own_comment
        and "mona stopped" in scenario.own_comment
    )


def test_an_outage_that_outlasts_the_retries_is_told_as_any_failure(scenario: Scenario) -> None:
    scenario.plans.add("fix", error(503, "overloaded"))
    began = utc_now() - RETRY
    done = scenario.runs().work_on(started(scenario.trigger, 9, outage_began=began))
    assert done.exit_code == 1
    assert "You don't need to do anything" not in scenario.own_comment
    assert "continue" in scenario.own_comment


def test_a_request_in_an_outage_of_github_is_done_when_that_is_over(scenario: Scenario) -> None:
    scenario.plans.add("fix", *plan_of_a_fix())
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    down = {
        "GITHUB_API_URL": nobody,
        "GITHUB_SERVER_URL": nobody,
        "GITHUB_GRAPHQL_URL": nobody,
    }
    with pytest.raises(ResolverError) as outage:
        scenario.runs(**down).work_on(started(scenario.trigger, 1))
    assert outage.value.cause == "forge_down"
    done = scenario.runs().work_on(started(scenario.trigger, 2, outage_began=utc_now()))
    assert done.exit_code == 0
    assert scenario.forge.done_once(scenario.issue)


def test_the_waits_grow_up_to_a_bound_and_end(scenario: Scenario) -> None:
    now = utc_now()
    waits = [
        next_retry_wait(started(scenario.trigger, attempt, outage_began=now), RETRY, now)
        for attempt in (1, 2, 3, 50)
    ]
    assert waits == [FIRST_RETRY_WAIT, 2 * FIRST_RETRY_WAIT, 4 * FIRST_RETRY_WAIT, MAX_RETRY_WAIT]
    assert (
        next_retry_wait(started(scenario.trigger, 2, outage_began=now), RETRY, now + RETRY) is None
    )
    assert next_retry_wait(started(scenario.trigger), timedelta(0), now) is None
