"""Requests that an outage of GitHub or of the model's provider has stopped."""

import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from resolver.entrypoints.webhook.request_queue import (
    FIRST_RETRY_WAIT,
    MAX_RETRY_WAIT,
    RequestQueue,
    RequestState,
    next_retry_wait,
)
from resolver.events.stream import utc_now
from resolver.storage.database import parse_database_url
from tests.github import reports
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.postgres import PASSWORD, Postgres
from tests.parts.waiting import until
from tests.webhook.serving import Forge, Plans, Server, plan_of_a_fix, started

RETRY = timedelta(hours=1)


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
        RESOLVER_PACE='{"write_interval": 0, "final_comment": 0, "github_writes": 0, '
        '"first_wait": 0.05}',
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


def test_the_waits_grow_up_to_a_bound_and_end() -> None:
    now = utc_now()
    waits = [
        next_retry_wait(started(reports.trigger(), attempt, outage_began=now), RETRY, now)
        for attempt in (1, 2, 3, 50)
    ]
    assert waits == [FIRST_RETRY_WAIT, 2 * FIRST_RETRY_WAIT, 4 * FIRST_RETRY_WAIT, MAX_RETRY_WAIT]
    second = started(reports.trigger(), 2, outage_began=now)
    assert next_retry_wait(second, RETRY, now + RETRY) is None
    assert next_retry_wait(started(reports.trigger()), timedelta(0), now) is None
