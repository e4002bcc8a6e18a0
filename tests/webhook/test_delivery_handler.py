"""Tests of what a delivery becomes before it is answered: a stored request, or nothing."""

from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.entrypoints.webhook.server import _delivery_handler
from resolver.entrypoints.webhook.webhook import HandleDelivery
from resolver.models.run import Trigger
from tests.parts.events import Events
from tests.parts.github import GitHubServer
from tests.webhook.serving import BOT, Forge

REPOSITORY = "octo/calc"


class Stored:
    """A worker that only stores requests."""

    def __init__(self) -> None:
        self.requests: list[Trigger] = []

    def enqueue(self, delivery: str, trigger: Trigger) -> None:
        self.requests.append(trigger)


@pytest.fixture
def forge(github: GitHubServer) -> Forge:
    made = Forge(github)
    made.repository(REPOSITORY)
    return made


def handler(forge: Forge, folder: Path, stored: Any, **more: str) -> HandleDelivery:
    environment = {
        "HOME": str(folder),
        "GITHUB_TOKEN": forge.token,
        "RESOLVER_BOT_LOGIN": BOT,
        **forge.github.addresses,
        **more,
    }
    return _delivery_handler(load_settings({}, environment), stored)


def test_a_delivery_that_asks_for_work_is_stored(forge: Forge, tmp_path: Path) -> None:
    stored, issue = Stored(), forge.issue(REPOSITORY, "none")
    handle, events = handler(forge, tmp_path, stored), Events(forge.github, REPOSITORY)
    by_program = events.by_program("mona", issue=issue.number, instruction="fix")
    assert handle("1", "issue_comment", forge.mention(issue)) == "stored"
    assert handle("2", "repository_dispatch", by_program) == "stored"
    assert [trigger.number for trigger in stored.requests] == [issue.number] * 2
    assert handle("3", "ping", {}) == "pong"
    assert handle("4", "watch", {"action": "started"}).startswith("ignored: ")
    assert len(stored.requests) == 2
