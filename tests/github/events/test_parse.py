"""Tests of parsing events into triggers, whose keys depend on the event alone."""

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from resolver.github.events.parse import parse_github_event
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.starting_events import ListeningPolicy
from resolver.models.run import Snapshot, Trigger, TriggerKind
from tests.parts.published import WEBHOOK_EXAMPLES, require

Payload = dict[str, Any]


@pytest.fixture(scope="module")
def examples() -> dict[str, list[Payload]]:
    """GitHub's published example payloads by event."""
    events = json.loads(require(WEBHOOK_EXAMPLES).read_bytes())
    return {event["name"]: event["examples"] for event in events}


@pytest.fixture
def comment(examples: dict[str, list[Payload]]) -> Payload:
    found = copy.deepcopy(next(e for e in examples["issue_comment"] if e["action"] == "created"))
    found["comment"]["body"] = "Thanks. @agent please fix this"
    return found


@pytest.fixture
def labeled(examples: dict[str, list[Payload]]) -> Payload:
    found = copy.deepcopy(next(e for e in examples["issues"] if e["action"] == "labeled"))
    found["label"] = {**found.get("label", {}), "name": "agent"}
    return found


def parsed(name: str, payload: Payload, **changes: Any) -> Trigger | IgnoredEvent:
    values: dict[str, Any] = {"mention": "@agent", "label": "agent", "bot_login": "resolver[bot]"}
    arrival = changes.pop("arrival", None)
    return parse_github_event(name, payload, ListeningPolicy(**{**values, **changes}), arrival)


def reason(name: str, payload: Payload, **changes: Any) -> str:
    found = parsed(name, payload, **changes)
    assert isinstance(found, IgnoredEvent)
    return found.reason


def test_a_mention_in_a_new_comment_starts_work(comment: Payload) -> None:
    found = parsed("issue_comment", comment)
    assert isinstance(found, Trigger)
    assert found.kind is TriggerKind.ISSUE_COMMENT
    assert found.key == f"issue_comment:{comment['comment']['id']}"
    assert found.repository == "Codertocat/Hello-World"
    assert found.number == 1
    assert found.instruction == "please fix this"
    assert found.actor.login == "Codertocat"
    assert found.at == datetime(2019, 5, 15, 15, 20, 21, tzinfo=UTC)
    assert found.comment_id == comment["comment"]["id"]
    assert not found.is_pull_request
    assert found.snapshot == Snapshot(
        title="Spelling error in the README file",
        body="It looks like you accidently spelled 'commit' with two 't's.",
        author="Codertocat",
        labels=("bug",),
        milestone="v1.0",
        assignees=("Codertocat",),
    )


def test_the_same_event_has_the_same_key_and_another_has_another(comment: Payload) -> None:
    again = copy.deepcopy(comment)
    again["issue"]["title"] = "edited meanwhile"
    first, second = parsed("issue_comment", comment), parsed("issue_comment", again)
    again["comment"]["id"] += 1
    third = parsed("issue_comment", again)
    assert isinstance(first, Trigger)
    assert isinstance(second, Trigger)
    assert isinstance(third, Trigger)
    assert first.key == second.key != third.key


def test_a_comment_on_a_pull_request_is_recognized(comment: Payload) -> None:
    comment["issue"]["pull_request"] = {"url": "https://api.github.com/x"}
    found = parsed("issue_comment", comment)
    assert isinstance(found, Trigger)
    assert found.is_pull_request


@pytest.mark.parametrize("action", ["edited", "deleted"])
def test_only_a_new_comment_counts(comment: Payload, action: str) -> None:
    comment["action"] = action
    assert action in reason("issue_comment", comment)


def test_resolvers_own_comment_is_ignored(comment: Payload) -> None:
    for account in (comment["comment"]["user"], comment["sender"]):
        account["login"] = "Resolver[bot]"
    assert (
        reason("issue_comment", comment, allowed_users=("resolver[bot]",))
        == "it was made by Resolver itself"
    )


@pytest.mark.attack
def test_a_bot_is_ignored_unless_allowed(comment: Payload) -> None:
    """Another bot mentions the agent: ignored, unless the operator lists it."""
    for account in (comment["comment"]["user"], comment["sender"]):
        account.update(login="evil[bot]", type="Bot")
    assert "isn't a person" in reason("issue_comment", comment)
    assert isinstance(parsed("issue_comment", comment, allowed_users=("Evil[bot]",)), Trigger)


@pytest.mark.attack
def test_a_label_added_by_a_bot_is_ignored(labeled: Payload) -> None:
    """A bot adds the label that starts work: ignored."""
    labeled["sender"].update(login="evil[bot]", type="Bot")
    assert "isn't a person" in reason("issues", labeled)


def test_text_of_somebody_else_is_not_the_senders_request(comment: Payload) -> None:
    comment["sender"]["id"] += 1
    assert "author" in reason("issue_comment", comment)


def test_a_deleted_author_asks_for_nothing(comment: Payload) -> None:
    comment["comment"]["user"] = None
    assert "author" in reason("issue_comment", comment)


@pytest.mark.parametrize("name", ["agents", "bug", ""])
def test_another_label_starts_nothing(labeled: Payload, name: str) -> None:
    labeled["label"]["name"] = name
    assert "the label isn't" in reason("issues", labeled)


@pytest.mark.parametrize(
    "path", ["action", "issue", "issue.number", "comment", "comment.created_at", "sender.id"]
)
def test_a_payload_without_a_field_is_ignored_with_its_name(comment: Payload, path: str) -> None:
    *parents, last = path.split(".")
    where = comment
    for parent in parents:
        where = where[parent]
    del where[last]
    assert path in reason("issue_comment", comment)


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", 1e300, "", "soon"]
)
def test_an_event_with_an_invalid_time_is_ignored(comment: Payload, moment: object) -> None:
    comment["comment"]["created_at"] = moment
    assert "created_at" in reason("issue_comment", comment)


@pytest.mark.parametrize("name", ["../x", "a/b/c", "a", "a/b\n", "a b/c", "https://evil/a/b"])
def test_an_event_with_an_invalid_repository_is_ignored(comment: Payload, name: str) -> None:
    comment["repository"]["full_name"] = name
    assert "full_name" in reason("issue_comment", comment)
