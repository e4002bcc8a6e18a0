"""Tests of triggers from reviews and comments on the code, pinned to the event's commit."""

import copy
from typing import Any

import pytest

from resolver.models.run import Command, TriggerKind
from tests.github.events.events import Payload, example, reason, started

COMMENT, REVIEW = "pull_request_review_comment", "pull_request_review"


@pytest.fixture
def comment() -> Payload:
    payload = example(COMMENT, "created")
    body = "Hm. @agent review, mostly this loop"
    payload["comment"] |= {"body": body, "user": payload["sender"]}
    return payload


@pytest.fixture
def review() -> Payload:
    payload = example(REVIEW, "submitted")
    payload["review"] |= {"body": "@agent review", "user": payload["sender"]}
    return payload


def test_a_comment_on_the_code_names_the_commit_that_was_seen(comment: Payload) -> None:
    found = started(COMMENT, comment)
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
    assert started(COMMENT, comment).at.isoformat() == "2026-01-01T10:05:00+00:00"


def test_all_events_of_one_review_have_one_key(comment: Payload, review: Payload) -> None:
    """GitHub sends one for the review, and one for each of its comments on lines."""
    second = copy.deepcopy(comment)
    second["comment"] |= {"id": comment["comment"]["id"] + 1, "body": "@agent and rename this"}
    for payload in (comment, second):
        payload["comment"]["pull_request_review_id"] = review["review"]["id"]
    submitted = started(REVIEW, review)
    keys = {started(COMMENT, payload).key for payload in (comment, second)} | {submitted.key}
    assert keys == {f"review:{submitted.review_id}"}
    assert (submitted.kind, submitted.comment_id) == (
        TriggerKind.REVIEW_SUBMITTED,
        submitted.review_id,
    )
    assert submitted.head == review["pull_request"]["head"]["sha"]


def test_a_comment_without_a_review_asks_for_itself(comment: Payload) -> None:
    comment["comment"]["pull_request_review_id"] = None
    found = started(COMMENT, comment)
    assert (found.key, found.review_id) == (f"review_comment:{found.comment_id}", None)


BOT = {"login": "evil[bot]", "id": 1, "type": "Bot"}
GHOST: dict[str, Any] = {"user": None}


@pytest.mark.parametrize(
    ("event", "text", "why"),
    [
        *(({"action": action}, {}, "only a new one") for action in ("edited", "dismissed")),
        *(
            ({}, {"body": f"@agent {words}"}, "in the conversation")
            for words in ("stop", "continue", "+50 iterations", "approve", "deny")
        ),
        *(
            ({}, {"body": body}, "doesn't mention")
            for body in (None, "", "`@agent review`", "> @agent review", "review it")
        ),
        ({"sender": BOT}, {"user": BOT}, "isn't a person"),
        ({}, GHOST, "author"),
        ({}, {"user": {"login": "other", "id": 999, "type": "User"}}, "author"),
    ],
)
def test_other_texts_of_a_review_ask_for_nothing(
    comment: Payload, review: Payload, event: Payload, text: Payload, why: str
) -> None:
    for name, payload, field in ((COMMENT, comment, "comment"), (REVIEW, review, "review")):
        payload[field] |= text
        assert why in reason(name, payload | event)


@pytest.mark.parametrize("sha", ["", "main", "--upload-pack=x", "g" * 40, "a" * 41, None])
def test_an_invalid_head_commit_is_refused(comment: Payload, sha: Any) -> None:
    comment["pull_request"]["head"]["sha"] = sha
    assert "payload is invalid" in reason(COMMENT, comment)
