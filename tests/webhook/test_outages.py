"""Requests that an outage of GitHub or of the model's provider has stopped."""

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

from resolver.entrypoints.webhook.request_queue import (
    FIRST_RETRY_WAIT,
    MAX_RETRY_WAIT,
    next_retry_wait,
)
from resolver.events.stream import utc_now
from tests.github import reports
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.postgres import PASSWORD, Postgres
from tests.parts.waiting import until
from tests.webhook.serving import Forge, Plans, Server, plan_of_a_fix, started

RETRY = timedelta(hours=1)


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
