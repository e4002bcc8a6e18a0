"""Tests of learning by webhook that a pull request was closed, and of showing its outcome."""

import http.client
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from resolver.entrypoints.webhook.outcomes import (
    OutcomeRefresher,
    OutcomeStore,
    repository_of_closed_pull_request,
)
from resolver.entrypoints.webhook.page_links import outcome_page_url
from resolver.errors import ForgeError
from resolver.models.outcome import PullRequestOutcome
from resolver.storage.database import parse_database_url
from tests.outcomes.scenario import BOT, REPOSITORY, Scenario
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.waiting import until
from tests.webhook.serving import SECRET, Forge, Server

NOW = datetime(2026, 11, 23, tzinfo=UTC)
MERGED = PullRequestOutcome(number=7, outcome="merged", created_at=NOW)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OutcomeStore]:
    made = OutcomeStore(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"))
    yield made
    made.close()


def test_outcomes_are_read_when_they_are_due(store: OutcomeStore) -> None:
    read_repositories: list[str] = []

    def read(repository: str) -> list[PullRequestOutcome]:
        read_repositories.append(repository)
        if len(read_repositories) == 1:
            raise ForgeError("GitHub is down", "try again", "forge_down")
        return [MERGED]

    times = [NOW]
    refresher = OutcomeRefresher(store, read, lambda: times[-1])
    assert refresher.refresh_due() == 0
    refresher.schedule("Octo/Sums")
    assert refresher.refresh_due() == 1 and refresher.refresh_due() == 0
    times.append(NOW + timedelta(hours=1))
    assert refresher.refresh_due() == 1
    assert store.get("octo/SUMS") == (MERGED,)
    times.append(NOW + timedelta(hours=2))
    assert refresher.refresh_due() == 0
    times.append(NOW + timedelta(hours=25))
    assert refresher.refresh_due() == 1
    assert store.get("octo/other") is None


def payload(
    ref: str = "agent/issue-1-x", source: Any = "o/r", login: str = "bot"
) -> dict[str, Any]:
    head = {"ref": ref, "repo": {"full_name": source} if source else None}
    return {
        "action": "closed",
        "pull_request": {"head": head, "user": {"login": login}},
        "repository": {"full_name": "o/r"},
    }


def test_only_branches_of_resolver_count() -> None:
    assert repository_of_closed_pull_request("pull_request", payload()) == "o/r"
    assert repository_of_closed_pull_request("pull_request", payload(login="Bot"), "bot") == "o/r"
    for other in (
        payload(ref="feature"),
        payload(source="eve/r"),
        payload(source=None),
        {**payload(), "action": "opened"},
        {"action": "closed"},
        {"action": "closed", "pull_request": []},
    ):
        assert repository_of_closed_pull_request("pull_request", other) == ""
    assert repository_of_closed_pull_request("pull_request", payload(login="eve"), "bot") == ""
    assert repository_of_closed_pull_request("issues", payload()) == ""


def get(server: Server, url: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request("GET", url.removeprefix("http://resolver.test"))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_closed_pull_request_is_shown_on_the_page(github: GitHubServer, tmp_path: Path) -> None:
    scenario = Scenario(github)
    pull = scenario.open("closed", title="Add <b>bold</b>")
    github.close_pull(pull)
    with ModelEndpoint() as endpoint:
        forge = Forge(github)
        token = github.token_for(BOT, REPOSITORY)
        more = {
            "RESOLVER_PUBLIC_URL": "http://resolver.test",
            "GITHUB_TOKEN": token,
            "RESOLVER_BOT_LOGIN": BOT,
        }
        server = Server(tmp_path, forge, endpoint, **more)
        server.start()
        try:
            event = github.event_pull_request(pull, "closed", "mona")
            assert server.deliver(event, "pull_request")[0] == 202
            url = outcome_page_url("http://resolver.test", SECRET, REPOSITORY)
            until(lambda: "0 of 1" in get(server, url)[1], 60)
            page = get(server, url)[1]
            assert "Add &lt;b&gt;bold" in page and ">closed<" in page
            data = json.loads(get(server, f"{url}&format=json")[1])
            assert data["summary"]["acceptance"]["total"] == 1
            assert get(server, url[:-1])[0] == 404
            assert get(server, url.replace("sums", "other"))[0] == 404
        finally:
            server.close()
    server.check()
    assert [p.outcome for p in scenario.ledger_ref.read().pull_requests] == ["closed"]
