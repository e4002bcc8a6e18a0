"""Tests of triggers from reviews and comments on the code, pinned to the event's commit."""

from typing import Any

import pytest

from resolver.models.run import Command, TriggerKind
from tests.github.events.events import Payload, example, reason, started

COMMENT, REVIEW = "pull_request_review_comment", "pull_request_review"
BOT = {"login": "evil[bot]", "id": 1, "type": "Bot"}


def comment(body: str | None = "Hm. @agent review, mostly this loop", **changes: Any) -> Payload:
    payload = example(COMMENT, "created")
    payload["comment"] |= {"body": body, "user": payload["sender"], **changes}
    return payload


def review(body: str | None = "@agent review", **changes: Any) -> Payload:
    payload = example(REVIEW, "submitted")
    payload["review"] |= {"body": body, "user": payload["sender"], **changes}
    return payload


def test_a_comment_on_the_code_names_the_commit_that_was_seen() -> None:
    times = {"created_at": "2026-01-01T10:00:00Z", "updated_at": "2026-01-01T10:05:00Z"}
    payload = comment(**times)
    pull, found = payload["pull_request"], started(COMMENT, payload)
    assert (found.kind, found.command) == (TriggerKind.REVIEW_COMMENT, Command.REVIEW)
    assert (found.number, found.is_pull_request) == (pull["number"], True)
    assert found.head == pull["head"]["sha"]
    assert found.review_id == payload["comment"]["pull_request_review_id"]
    assert found.comment_id == payload["comment"]["id"]
    assert "mostly this loop" in found.instruction
    assert found.snapshot is not None and found.snapshot.title == pull["title"]
    # A drafted comment counts from when others saw it.
    assert found.at.isoformat() == "2026-01-01T10:05:00+00:00"


def test_all_events_of_one_review_have_one_key() -> None:
    """GitHub sends one for the review, and one for each of its comments on lines."""
    payload = review()
    id = payload["review"]["id"]
    submitted = started(REVIEW, payload)
    comments = [comment(id=number, pull_request_review_id=id) for number in (1, 2)]
    assert {started(COMMENT, one).key for one in comments} == {submitted.key} == {f"review:{id}"}
    assert (submitted.kind, submitted.comment_id) == (TriggerKind.REVIEW_SUBMITTED, id)
    assert submitted.head == payload["pull_request"]["head"]["sha"]
    alone = started(COMMENT, comment(id=1, pull_request_review_id=None))
    assert (alone.key, alone.review_id) == ("review_comment:1", None)


@pytest.mark.parametrize(
    ("event", "text", "why"),
    [
        *(({"action": action}, {}, "only a new one") for action in ("edited", "dismissed")),
        *(
            ({}, {"body": f"@agent {words}"}, "in the conversation")
            for words in ("stop", "continue", "approve", "deny")
        ),
        *(
            ({}, {"body": body}, "doesn't ask")
            for body in (None, "`@agent review`", "> @agent review")
        ),
        ({"sender": BOT}, {"user": BOT}, "isn't a person"),
        ({}, {"user": None}, "author"),
        ({}, {"user": {"login": "other", "id": 999, "type": "User"}}, "author"),
    ],
)
def test_other_texts_of_a_review_ask_for_nothing(event: Payload, text: Payload, why: str) -> None:
    assert why in reason(COMMENT, comment(**text) | event)
    assert why in reason(REVIEW, review(**text) | event)


@pytest.mark.parametrize("sha", ["", "main", "--upload-pack=x", "g" * 40, "a" * 41, None])
def test_an_invalid_head_commit_is_refused(sha: Any) -> None:
    payload = comment()
    payload["pull_request"]["head"]["sha"] = sha
    assert "payload is invalid" in reason(COMMENT, payload)
