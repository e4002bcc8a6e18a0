"""Tests of triggers from reviews and comments on the code, pinned to the event's commit."""

import copy
import json
from typing import Any

import pytest

from resolver.models.run import Command, Trigger, TriggerKind
from tests.github.events.test_parse import Payload, parsed, reason
from tests.parts.published import WEBHOOK_EXAMPLES, require

COMMENT, REVIEW = "pull_request_review_comment", "pull_request_review"


@pytest.fixture(scope="module")
def examples() -> dict[str, list[Payload]]:
    """GitHub's published example payloads by event."""
    events = json.loads(require(WEBHOOK_EXAMPLES).read_bytes())
    return {event["name"]: event["examples"] for event in events}


def example(examples: dict[str, list[Payload]], name: str, action: str, body: str) -> Payload:
    found = copy.deepcopy(next(e for e in examples[name] if e["action"] == action))
    text = found["comment" if name == COMMENT else "review"]
    text["body"] = body
    text["user"] = found["sender"]
    return found


@pytest.fixture
def comment(examples: dict[str, list[Payload]]) -> Payload:
    return example(examples, COMMENT, "created", "Hm. @agent review, mostly this loop")


@pytest.fixture
def review(examples: dict[str, list[Payload]]) -> Payload:
    return example(examples, REVIEW, "submitted", "@agent review")


def test_a_comment_on_the_code_names_the_commit_that_was_seen(comment: Payload) -> None:
    found = parsed(COMMENT, comment)
    assert isinstance(found, Trigger)
    assert (found.kind, found.command) == (TriggerKind.REVIEW_COMMENT, Command.REVIEW)
    assert found.head == comment["pull_request"]["head"]["sha"]
    assert found.review_id == comment["comment"]["pull_request_review_id"]
    assert (found.number, found.is_pull_request) == (comment["pull_request"]["number"], True)
    assert found.comment_id == comment["comment"]["id"]
    assert "mostly this loop" in found.instruction
    assert found.snapshot is not None
    assert found.snapshot.title == comment["pull_request"]["title"]


def test_a_comment_that_was_drafted_counts_from_when_others_saw_it(comment: Payload) -> None:
    comment["comment"] |= {
        "created_at": "2026-01-01T10:00:00Z",
        "updated_at": "2026-01-01T10:05:00Z",
    }
    found = parsed(COMMENT, comment)
    assert isinstance(found, Trigger)
    assert found.at.isoformat() == "2026-01-01T10:05:00+00:00"


def test_a_submitted_review_is_one_request(review: Payload) -> None:
    found = parsed(REVIEW, review)
    assert isinstance(found, Trigger)
    assert (found.kind, found.command) == (TriggerKind.REVIEW_SUBMITTED, Command.REVIEW)
    assert (found.key, found.review_id) == (f"review:{found.comment_id}", found.comment_id)
    assert found.head == review["pull_request"]["head"]["sha"]


def test_all_events_of_one_review_have_one_key(comment: Payload, review: Payload) -> None:
    """GitHub sends one for the review, and one for each of its comments on lines."""
    second = copy.deepcopy(comment)
    second["comment"] |= {"id": comment["comment"]["id"] + 1, "body": "@agent and rename this"}
    for payload in (comment, second):
        payload["comment"]["pull_request_review_id"] = review["review"]["id"]
    found = [parsed(COMMENT, comment), parsed(COMMENT, second), parsed(REVIEW, review)]
    assert len({outcome.key for outcome in found if isinstance(outcome, Trigger)}) == 1
    assert all(isinstance(outcome, Trigger) for outcome in found)


def test_a_single_comment_asks_only_by_its_own_event(comment: Payload, review: Payload) -> None:
    """GitHub makes a review around it, without a word."""
    review["review"] |= {"body": None, "id": comment["comment"]["pull_request_review_id"]}
    assert "doesn't mention" in reason(REVIEW, review)
    assert isinstance(parsed(COMMENT, comment), Trigger)


def test_a_comment_without_a_review_asks_for_itself(comment: Payload) -> None:
    comment["comment"]["pull_request_review_id"] = None
    found = parsed(COMMENT, comment)
    assert isinstance(found, Trigger)
    assert (found.key, found.review_id) == (f"review_comment:{found.comment_id}", None)


@pytest.mark.parametrize("action", ["edited", "deleted", "dismissed"])
def test_only_new_text_asks(comment: Payload, review: Payload, action: str) -> None:
    assert "only a new one" in reason(COMMENT, comment | {"action": action})
    assert "only a new one" in reason(REVIEW, review | {"action": action})


@pytest.mark.parametrize("words", ["stop", "continue", "+50 iterations", "approve", "deny"])
def test_comments_on_the_code_do_not_control_runs(comment: Payload, words: str) -> None:
    comment["comment"]["body"] = f"@agent {words}"
    assert "in the conversation" in reason(COMMENT, comment)


@pytest.mark.parametrize("body", [None, "", "`@agent review`", "> @agent review", "review it"])
def test_a_comment_without_a_mention_asks_for_nothing(comment: Payload, body: str | None) -> None:
    comment["comment"]["body"] = body
    assert "doesn't mention" in reason(COMMENT, comment)


def test_bots_ghosts_and_other_senders_ask_nothing(comment: Payload, review: Payload) -> None:
    bot = {**comment["sender"], "login": "evil[bot]", "type": "Bot"}
    comment["comment"]["user"] = comment["sender"] = bot
    assert "isn't a person" in reason(COMMENT, comment)
    review["review"]["user"] = None
    assert "author" in reason(REVIEW, review)
    review["review"]["user"] = {"login": "other", "id": 999, "type": "User"}
    assert "author" in reason(REVIEW, review)


@pytest.mark.parametrize("sha", ["", "main", "--upload-pack=x", "g" * 40, "a" * 41, None])
def test_an_invalid_head_commit_is_refused(comment: Payload, sha: Any) -> None:
    comment["pull_request"]["head"]["sha"] = sha
    assert "payload is invalid" in reason(COMMENT, comment)
