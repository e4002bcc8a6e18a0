"""Tests of events of issues and pull requests: opened, labeled, assigned, review requested."""

from datetime import UTC, datetime
from typing import Any

import pytest

from resolver.github.events.starting_events import STARTING_EVENTS, find_starting_event
from resolver.models.run import Command, TriggerKind
from tests.github.events.events import BOT, Payload, example, reason, started

SUBJECTS = [("issues", "issue"), ("pull_request", "pull_request")]
BOTH = pytest.mark.parametrize(("name", "field"), SUBJECTS)


def done(name: str, action: str, body: str | None = "2 + 2 is 0.", **changes: Any) -> Payload:
    """Return the example of the action, done by a person long after the opening.

    changes: other values of the issue or pull request.
    """
    payload = example(name, action)
    subject = payload["issue" if name == "issues" else name]
    payload["sender"] = {"login": "mona", "id": 7, "type": "User"}
    opened_at = "2026-01-01T10:00:00Z"
    subject |= {
        "body": body,
        "state": "open",
        "labels": [],
        "user": payload["sender"],
        "created_at": opened_at,
        "updated_at": opened_at if action == "opened" else "2026-01-02T10:00:00Z",
        **changes,
    }
    own = {"login": BOT.upper(), "id": 9, "type": "User"}
    return payload | {"label": {"name": "Agent"}, "assignee": own, "requested_reviewer": own}


def at_once(name: str, action: str, body: str, seconds: int = 1, **changes: Any) -> Payload:
    """Return the same action, done while it was opened."""
    return done(name, action, body, updated_at=f"2026-01-01T10:00:{seconds:02}Z", **changes)


@pytest.mark.parametrize(
    ("name", "action"),
    [(n, row.action) for row in STARTING_EVENTS for n in row.events if n in dict(SUBJECTS)],
)
def test_each_starting_action_starts_work(name: str, action: str) -> None:
    found = started(name, done(name, action, "@agent please fix the sign"))
    row = find_starting_event(name, action)
    assert row is not None and row.kind is found.kind
    assert (found.actor.login, found.is_pull_request) == ("mona", name == "pull_request")
    asks_for_review = action == "review_requested"
    assert found.command is (Command.REVIEW if asks_for_review else Command.FIX)
    assert found.instruction == ("please fix the sign" if action == "opened" else "")


@BOTH
def test_a_mention_in_a_new_issue_or_pull_request_starts_work(name: str, field: str) -> None:
    payload = done(name, "opened", "It fails.\n\n@agent stop")
    found = started(name, payload)
    # A command for a run is work, since no run exists yet.
    assert (found.kind, found.command) == (TriggerKind.ISSUE_OPENED, Command.FIX)
    assert (found.instruction, found.number) == ("stop", payload[field]["number"])
    assert (found.at, found.comment_id) == (datetime(2026, 1, 1, 10, tzinfo=UTC), None)
    assert found.snapshot is not None and found.snapshot.body == payload[field]["body"]
    assert found.head == (payload[field]["head"]["sha"] if name == "pull_request" else "")


OWN_TEXT = "<!-- resolver:run key=0 -->\n\nFixes #3. Write @agent fix this."
OTHER = {"login": "zoe", "id": 1}


@BOTH
def test_everything_else_starts_nothing(name: str, field: str) -> None:
    for body in (None, "", "`@agent fix`", "> @agent fix", "@agent thanks!", OWN_TEXT):
        assert "doesn't ask" in reason(name, done(name, "opened", body))
    for action in ("reopened", "edited", "closed", "unlabeled", "synchronize"):
        payload = done(name, "opened", "@agent fix") | {"action": action}
        assert "starts no work" in reason(name, payload)
    for label in ("agents", "bug", ""):
        payload = done(name, "labeled") | {"label": {"name": label}}
        assert "the label isn't agent" in reason(name, payload)
    for account in (OTHER, None):
        payload = done(name, "assigned") | {"assignee": account}
        assert "somebody else" in reason(name, payload)
    asked = done("pull_request", "review_requested") | {"requested_reviewer": None}
    assert "somebody else" in reason("pull_request", asked)
    assert "set bot_login" in reason(name, done(name, "assigned"), bot_login="")
    assert "closed" in reason(name, done(name, "labeled", state="closed"))


def test_a_text_of_resolver_in_a_comment_never_asks() -> None:
    """With a person's token our login is not known here."""
    payload = example("issue_comment", "created")
    payload["comment"] |= {"body": OWN_TEXT, "user": payload["sender"]}
    assert "doesn't ask" in reason("issue_comment", payload)


def test_the_label_starts_work_on_issues_and_pull_requests_with_keys_of_their_own() -> None:
    issue, pull = (
        started("issues", done("issues", "labeled", id=1)),
        started("pull_request", done("pull_request", "labeled", id=1)),
    )
    assert issue.key == "labeled:1:Agent:2026-01-02T10:00:00+00:00"
    assert pull.key == f"pull:{issue.key}"


@BOTH
def test_opening_with_mention_label_and_assignee_is_one_request(name: str, field: str) -> None:
    """Of the label, with the words; without one, of the mention."""
    text, labels = "@agent ask why is this so?", [{"name": "agent"}]
    assert "label" in reason(name, done(name, "opened", text, labels=labels))
    assert "label" in reason(name, at_once(name, "assigned", text, labels=labels))
    assert started(name, at_once(name, "labeled", text)).command is Command.QUESTION
    assert "text already asks" in reason(name, at_once(name, "assigned", text))


def test_a_label_is_about_the_text_only_if_its_author_put_it_on_at_once() -> None:
    """Whoever opened it may not have been allowed to ask."""
    eve = {"login": "eve", "id": 66, "type": "User"}
    for payload in (
        at_once("issues", "labeled", "@agent delete all", user=eve),
        at_once("issues", "labeled", "@agent delete all", 11),
    ):
        found = started("issues", payload)
        assert (found.actor.login, found.instruction) == ("mona", "")


@pytest.mark.attack
@pytest.mark.parametrize("action", ["opened", "labeled", "assigned"])
@BOTH
def test_bots_start_nothing_unless_they_are_allowed(name: str, field: str, action: str) -> None:
    """A bot mentions the agent, or adds the label that starts work: ignored."""
    payload = done(name, action, "@agent fix")
    payload["sender"] |= {"login": "helper[bot]", "type": "Bot"}
    assert "isn't a person" in reason(name, payload)
    started(name, payload, allowed_users=["helper[bot]"])
    payload["sender"] |= {"login": BOT, "type": "User"}
    assert "by Resolver itself" in reason(name, payload)
