"""Tests of what a delivery becomes before it is answered: a stored request, or nothing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resolver.config.settings import Settings, load_settings
from resolver.entrypoints.webhook.server import _delivery_handler
from resolver.entrypoints.webhook.webhook import HandleDelivery
from resolver.github.events.payloads import parse_payload
from resolver.models.run import Command, Trigger
from resolver.runs.common import run_id, trigger_for_target
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


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to each value inside a payload."""
    inner = value.items() if isinstance(value, dict) else ()
    return [path, *(p for name, below in inner for p in places(below, (*path, name)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with another value at that path."""
    if not path:
        return new
    return {**value, path[0]: changed(value[path[0]], path[1:], new)}


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary().map(repr)
) | st.sampled_from(
    ["\ud800", "0001-01-01T00:00:00+14:00", 10**300, float("nan"), [], {}, "@agent \x00", "a/b"]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_payload_changed_anywhere_is_ignored_or_can_be_stored(
    webhook_examples: Mapping[str, list[dict[str, Any]]], data: st.DataObject
) -> None:
    [example] = [e for e in webhook_examples["issue_comment"][:9] if e["action"] == "created"][:1]
    payload = changed(example, ("comment", "body"), "@agent please")
    for _ in range(data.draw(st.integers(1, 3))):
        payload = changed(payload, data.draw(st.sampled_from(places(payload)[1:])), data.draw(ODD))
    arrived = parse_payload(json.dumps(payload).encode())
    assert arrived is not None
    found = trigger_for_target(Settings(), "issue_comment", arrived)
    if isinstance(found, Trigger):
        assert Trigger.model_validate_json(found.model_dump_json()) == found
        assert run_id(found.key, found.at)
    else:
        assert found.reason.encode()
