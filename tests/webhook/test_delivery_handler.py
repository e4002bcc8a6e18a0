"""Tests of what a delivery becomes before it is answered: a stored request, or nothing."""

from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.entrypoints.webhook.server import _delivery_handler
from resolver.entrypoints.webhook.webhook import HandleDelivery
from resolver.models.run import Command, Trigger
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


def test_each_event_that_asks_for_work_is_stored(forge: Forge, tmp_path: Path) -> None:
    stored, github = Stored(), forge.github
    handle, events = handler(forge, tmp_path, stored), Events(github, REPOSITORY)
    issue = forge.issue(REPOSITORY, "none")
    opened = github.create_issue(REPOSITORY, "Wrong", "@agent please fix this", author="mona")
    github.commit(REPOSITORY, "topic", {"calc.py": "x = 1\n"})
    pull = github.create_pull(REPOSITORY, "topic", "Topic", "", author="mona")
    account = events.account(BOT)
    deliveries = [
        ("issue_comment", forge.mention(issue)),
        ("issues", github.event_issue_labeled(issue, "agent", sender="mona")),
        ("issues", events.subject(opened, "opened", "mona")),
        ("issues", events.subject(issue, "assigned", "mona", assignee=account)),
        (
            "pull_request",
            events.subject(pull, "review_requested", "mona", requested_reviewer=account),
        ),
        ("repository_dispatch", events.by_program("mona", issue=issue.number, instruction="fix")),
    ]
    for number, (event, payload) in enumerate(deliveries):
        assert handle(f"delivery-{number}", event, payload) == "stored", event
    numbers = [trigger.number for trigger in stored.requests]
    assert numbers == [1, 1, opened.number, 1, pull.number, 1]
    commands = [trigger.command for trigger in stored.requests]
    assert commands == [Command.FIX] * 4 + [Command.REVIEW, Command.FIX]
