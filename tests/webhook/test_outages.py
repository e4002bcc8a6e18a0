"""Requests that an outage of GitHub or of the model's provider has stopped."""

import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import Settings
from resolver.entrypoints.webhook.request_queue import (
    FIRST_RETRY_WAIT,
    MAX_RETRY_WAIT,
    RequestQueue,
    RequestState,
    next_retry_wait,
)
from resolver.entrypoints.webhook.request_runner import RequestRunner
from resolver.entrypoints.webhook.run_restore import ArchivedRunFolders
from resolver.events.stream import utc_now
from resolver.models.run import Trigger
from resolver.runs.common import trigger_for_target
from resolver.storage.database import parse_database_url
from resolver.storage.issue_history import IssueHistories
from resolver.storage.run_archive import RunArchive
from tests.parts.forwarding import Forwarder, forwarding
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.postgres import PASSWORD, Postgres
from tests.parts.runs import MODEL_KEY
from tests.parts.waiting import until
from tests.webhook.serving import Forge, Plans, Server, plan_of_a_fix, started

RETRY = timedelta(hours=1)
WAITED = "; trying again in 0 seconds"
"""What the log says when a finished run begins to wait for GitHub."""


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
            "RESOLVER_MODEL_OPTIONS": "{num_retries: 0}",
            "GITHUB_TOKEN": self.forge.token,
            **github.addresses,
            "RESOLVER_RUNTIME": "local",
            "RESOLVER_VERIFY": "false",
            "RESOLVER_COMMENT_INTERVAL_SECONDS": "{writes: 0}",
            "RESOLVER_RETRY_SECONDS": "{final_comment: 0, first_wait: 0.05}",
        }
        found = trigger_for_target(Settings(), "issue_comment", self.forge.mention(self.issue))
        assert isinstance(found, Trigger)
        self.trigger = found

    def runs(self, machine: str = "", **more: str) -> RequestRunner:
        """Those of one machine; machines with a name have an archive in common."""
        url = parse_database_url(f"sqlite:///{self.folder}/resolver.db")
        environment, folder = {**self.environment, **more}, self.folder / "runs" / machine
        return RequestRunner(
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


@pytest.mark.parametrize(
    "kind",
    [*(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("refused", "cut")), "503"],
)
def test_a_run_outlives_a_short_outage_of_the_whole_of_github(
    scenario: Scenario, github: GitHubServer, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It begins after the first reply of the model, and lasts until the run has waited for its
    end.

    A whole run, because all requests of its stages that follow have to survive it.
    """
    with forwarding(("127.0.0.1", github.port)) as forwarder:

        def answer(body: dict[str, Any]) -> Answer:
            reply_count = sum(message["role"] == "assistant" for message in body["messages"])
            if reply_count == 1 and kind == "refused":
                forwarder.refuse()
                threading.Thread(target=end_outage, args=(forwarder, caplog)).start()
            elif reply_count == 1 and kind == "cut":
                github.cut_next("*", ".", times=8)
            elif reply_count == 1:
                github.fail_next("*", ".", int(kind), times=8)
            return plan_of_a_fix()[reply_count]

        scenario.plans.endpoint.answer_with(answer)
        runs = scenario.runs(**server_at(forwarder.port))
        done = runs.execute(started(scenario.trigger, 1))
    assert done.exit_code == 0, caplog.text
    assert github.app.faults.waiting() == 0
    assert WAITED in caplog.text
    assert scenario.forge.done_once(scenario.issue)
    assert "Resolver opened" in scenario.own_comment
    assert len(scenario.plans.endpoint.requests) == len(plan_of_a_fix())


def test_a_server_repeats_a_run_until_the_whole_of_github_is_back_and_tells_it_once(
    github: GitHubServer, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """First nothing of GitHub answers, then its API alone, and then everything.

    A whole run, because queue, log, kept change and comment have to agree about three attempts.
    """
    forge, plans = Forge(github), Plans(model_endpoint)
    issue = forge.issue(forge.repository("octo/calc"), "fix")

    def answer(body: dict[str, Any]) -> Answer:
        reply_count = sum(message["role"] == "assistant" for message in body["messages"])
        if reply_count == 1:
            github.fail_next("*", ".", 503, times=100_000)
        return plan_of_a_fix()[reply_count]

    plans.endpoint.answer_with(answer)
    # Without retries in the run, whose waits would make the test long.
    server = Server(
        tmp_path,
        forge,
        model_endpoint,
        RESOLVER_RETRY_SECONDS="{final_comment: 0, github_writes: 0, first_wait: 0.05}",
    )
    server.start()
    try:
        assert server.deliver(forge.mention(issue))[0] == 202
        until(lambda: deferrals(tmp_path) == 1)
        assert not forge.branches(issue.repository)
        github.forget_failures()

        github.fail_next("*", r"\.git/", 503, times=100_000)
        end_wait(tmp_path)
        until(lambda: deferrals(tmp_path) == 2)
        [comment] = forge.own_comments(issue)
        assert "You don't need to do anything" in comment.body
        assert not forge.branches(issue.repository)
        github.forget_failures()

        end_wait(tmp_path)
        until(lambda: forge.done_once(issue) and "Resolver opened" in comment.body)
    finally:
        server.close()
    assert [each.id for each in forge.own_comments(issue)] == [comment.id]
    assert len(model_endpoint.requests) == len(plan_of_a_fix()), "the work was not done again"
    assert "Traceback" not in server.log


def deferrals(folder: Path) -> int:
    """Return how often an outage has deferred the server's request; 0 while it is executed."""
    with closing(RequestQueue(parse_database_url(f"sqlite:///{folder}/resolver.db"))) as queue:
        return max(
            (request.outages for request in queue.recent([RequestState.DEFERRED])), default=0
        )


def end_wait(folder: Path) -> None:
    """Make a deferred request due, as after the wait."""
    with closing(RequestQueue(parse_database_url(f"sqlite:///{folder}/resolver.db"))) as queue:
        for request in queue.recent([RequestState.DEFERRED]):
            queue.start_now(request.id)


def test_a_run_outlives_an_outage_of_the_database(
    github: GitHubServer, model_endpoint: ModelEndpoint, postgres: Postgres, tmp_path: Path
) -> None:
    """PostgreSQL stops after the first reply of the model, and starts when the server has noticed
    it.

    A whole run, because a process that everything writes to is stopped in the middle of it.
    """
    forge, plans = Forge(github), Plans(model_endpoint)
    issue = forge.issue(forge.repository("octo/calc"), "fix")

    def answer(body: dict[str, Any]) -> Answer:
        reply_count = sum(message["role"] == "assistant" for message in body["messages"])
        if reply_count == 1:
            postgres.stop()
            threading.Thread(target=start_again).start()
        return plan_of_a_fix()[reply_count]

    def start_again() -> None:
        try:
            until(lambda: "can't be used" in server.log)
        finally:
            postgres.start()
            started_again.set()

    started_again = threading.Event()
    plans.endpoint.answer_with(answer)
    with postgres.new_database() as url:
        address = url.render_as_string(hide_password=False)
        server = Server(tmp_path, forge, model_endpoint, RESOLVER_DATABASE_URL=address)
        server.start()
        try:
            assert server.deliver(forge.mention(issue))[0] == 202
            until(lambda: started_again.is_set() and forge.done_once(issue))
            assert "Resolver opened" in forge.own_comments(issue)[0].body
        finally:
            server.close()
    assert len(model_endpoint.requests) == len(plan_of_a_fix()), "the work was not done again"
    assert "Traceback" not in server.log
    assert PASSWORD not in server.log


def server_at(port: int) -> dict[str, str]:
    """The variables of a GitHub on this port."""
    server = f"http://127.0.0.1:{port}"
    return {
        "GITHUB_API_URL": f"{server}/api/v3",
        "GITHUB_SERVER_URL": server,
        "GITHUB_GRAPHQL_URL": f"{server}/api/graphql",
    }


def end_outage(forwarder: Forwarder, caplog: pytest.LogCaptureFixture) -> None:
    """Let connections through again when the run waits for them."""
    until(lambda: WAITED in caplog.text)
    forwarder.listen()


def test_the_waits_grow_up_to_a_bound_and_end(scenario: Scenario) -> None:
    now = utc_now()
    waits = [
        next_retry_wait(started(scenario.trigger, attempt, outage_began=now).request, RETRY, now)
        for attempt in (1, 2, 3, 50)
    ]
    assert waits == [FIRST_RETRY_WAIT, 2 * FIRST_RETRY_WAIT, 4 * FIRST_RETRY_WAIT, MAX_RETRY_WAIT]
    second = started(scenario.trigger, 2, outage_began=now).request
    assert next_retry_wait(second, RETRY, now + RETRY) is None
    assert next_retry_wait(started(scenario.trigger).request, timedelta(0), now) is None


def test_retries_end_although_the_clock_was_set_back(scenario: Scenario) -> None:
    now = utc_now()
    began = now + timedelta(days=400)
    waits = [
        next_retry_wait(started(scenario.trigger, attempt, outage_began=began).request, RETRY, now)
        for attempt in range(2, 20)
    ]
    lasting = [wait for wait in waits if wait is not None]
    assert FIRST_RETRY_WAIT + sum(lasting, timedelta(0)) >= RETRY, "it is retried for that time"
    assert waits[len(lasting) :] == [None] * (len(waits) - len(lasting))
    assert len(lasting) < len(waits)
