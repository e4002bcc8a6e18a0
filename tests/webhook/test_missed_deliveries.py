"""Deliveries that did not reach the server, read from the test GitHub."""

from datetime import timedelta
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.entrypoints.webhook.missed_deliveries import MissedDeliveries
from resolver.errors import ForgeError
from resolver.github.client.resources import PAGE_SIZE
from resolver.runs.wiring.sandbox import ForgeTokens
from resolver.storage.database import DatabaseError
from tests.parts.github import GitHubServer

NAME = "octo/calc"


class Scenario:
    """The App's webhook, the server that looks for what it missed, and what that has taken in."""

    def __init__(self, github: GitHubServer):
        self.github, self.hook = github, github.add_app("our-agent", NAME)
        self.taken: list[tuple[str, str, Any]] = []
        self.broken = False
        settings = load_settings(
            {"app_id": str(self.hook.id), "app_private_key": self.hook.private_key},
            {"GITHUB_API_URL": github.api_url},
        )
        source = ForgeTokens(now=github.world.now).app(settings)
        self.missed = MissedDeliveries(lambda: source, self._accept, github.world.now)

    def _accept(self, delivery: str, event: str, payload: dict[str, Any]) -> str:
        if self.broken:
            raise DatabaseError("the database is gone")
        self.taken.append((delivery, event, payload["n"]))
        return "stored"

    def attempt(self, guid: str, status: int, number: int = 1) -> None:
        self.github.advance(1)
        self.github.note_delivery(self.hook, guid, {"action": "created", "n": number}, status)

    def look(self) -> list[str]:
        self.taken.clear()
        self.missed.poll()
        return [guid for guid, _, _ in self.taken]


@pytest.fixture
def scenario(github: GitHubServer) -> Scenario:
    github.create_repository(NAME, {"a.txt": "one\n"})
    return Scenario(github)


def test_what_failed_is_taken_in_oldest_first_and_what_arrived_is_not(scenario: Scenario) -> None:
    scenario.attempt("first", 0, 1)
    scenario.attempt("fine", 202)
    scenario.attempt("second", 503, 2)
    scenario.attempt("repeated", 500)
    scenario.attempt("repeated", 202)
    scenario.github.advance(timedelta(hours=1).total_seconds())
    assert scenario.look() == ["first", "second"]
    assert scenario.taken == [("first", "issue_comment", 1), ("second", "issue_comment", 2)]
    scenario.attempt("third", 0)
    assert scenario.look() == ["third"], "no further back than it must"


def test_a_server_that_github_has_reached_once_looks_less_often(scenario: Scenario) -> None:
    scenario.attempt("first", 0)
    scenario.look()
    assert not scenario.missed.is_reached
    scenario.attempt("fine", 202)
    scenario.look()
    scenario.github.advance(timedelta(days=1).total_seconds())
    scenario.attempt("failed", 503)
    scenario.look()
    assert scenario.missed.is_reached


def test_what_github_no_longer_keeps_is_not_looked_for(scenario: Scenario) -> None:
    scenario.attempt("ancient", 0)
    scenario.github.advance(timedelta(days=4).total_seconds())
    assert scenario.look() == []


def test_all_pages_are_read(scenario: Scenario) -> None:
    scenario.attempt("first", 0)
    for number in range(PAGE_SIZE):
        scenario.attempt(f"fine-{number}", 202)
    assert scenario.look() == ["first"]


def test_a_look_that_fails_is_made_again(scenario: Scenario) -> None:
    scenario.attempt("first", 0)
    scenario.broken = True
    with pytest.raises(DatabaseError):
        scenario.look()
    scenario.broken = False
    scenario.github.fail_next("GET", r"/deliveries/\d+$", 401, times=1)
    with pytest.raises(ForgeError):
        scenario.look()
    assert scenario.look() == ["first"]


def test_a_delivery_that_can_not_be_read_keeps_no_other_out(scenario: Scenario) -> None:
    scenario.attempt("lost", 0)
    scenario.attempt("second", 0)
    scenario.github.fail_next("GET", r"/deliveries/\d+$", 404, times=1)
    assert scenario.look() == ["second"]
