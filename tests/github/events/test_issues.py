"""Tests of events of issues and pull requests: opened, labeled, assigned, review requested."""

from datetime import UTC, datetime

import pytest

from resolver.github.events.starting_events import STARTING_EVENTS, find_starting_event
from resolver.models.run import Command, TriggerKind
from tests.github.events.events import BOT, Payload, example, reason, started

SUBJECTS = [("issues", "issue"), ("pull_request", "pull_request")]


def done(name: str, action: str, body: str = "2 + 2 is 0.") -> Payload:
    """Return the example of the action, done by a person long after the opening."""
    payload = example(name, action)
    subject = payload["issue" if name == "issues" else name]
    subject |= {
        "body": body,
        "state": "open",
        "labels": [],
        "created_at": "2026-01-01T10:00:00Z",
        "updated_at": "2026-01-02T10:00:00Z",
    }
    payload["sender"] = {"login": "mona", "id": 7, "type": "User"}
    subject["user"] = payload["sender"]
    if action == "opened":
        subject["updated_at"] = subject["created_at"]
    if action == "labeled":
        payload["label"] = {"name": "Agent"}
    if action == "assigned":
        payload["assignee"] = {"login": BOT.upper(), "id": 9, "type": "User"}
    if action == "review_requested":
        payload["requested_reviewer"] = {"login": BOT, "id": 9, "type": "User"}
    return payload


def at_once(payload: Payload, seconds: int = 1) -> Payload:
    """Return the same action, done by the author while opening it."""
    subject = payload.get("issue") or payload["pull_request"]
    subject["updated_at"] = f"2026-01-01T10:00:{seconds:02}Z"
    return payload


BOTH = pytest.mark.parametrize(("name", "field"), SUBJECTS)


@pytest.mark.parametrize(
    ("name", "action"), [(n, row.action) for row in STARTING_EVENTS for n in row.events]
)
def test_each_starting_action_has_a_case(name: str, action: str) -> None:
    row = find_starting_event(name, action)
    if name in dict(SUBJECTS):
        found = started(name, done(name, action, "@agent please fix the sign"))
        assert row is not None and row.kind is found.kind
        assert found.actor.login == "mona"


@BOTH
def test_a_mention_in_a_new_issue_or_pull_request_starts_work(name: str, field: str) -> None:
    payload = done(name, "opened", "It fails.\n\n@agent please fix the sign")
    found = started(name, payload)
    assert (found.kind, found.command) == (TriggerKind.ISSUE_OPENED, Command.FIX)
    assert found.instruction == "please fix the sign"
    assert found.number == payload[field]["number"]
    assert found.is_pull_request is (name == "pull_request")
    assert found.at == datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert found.snapshot is not None
    assert found.snapshot.body == payload[field]["body"]
    assert found.comment_id is None
    if name == "pull_request":
        assert found.head == payload[field]["head"]["sha"]


@pytest.mark.parametrize(
    "body", [None, "", "`@agent fix`", "> @agent fix", "<!-- @agent fix -->", "@agent thanks!"]
)
@BOTH
def test_a_text_without_a_request_starts_nothing(name: str, field: str, body: str | None) -> None:
    payload = done(name, "opened")
    payload[field]["body"] = body
    assert "doesn't ask" in reason(name, payload)


@pytest.mark.parametrize("action", ["reopened", "edited", "closed", "unlabeled", "synchronize"])
@BOTH
def test_later_actions_on_an_issue_start_nothing_again(name: str, field: str, action: str) -> None:
    payload = done(name, "opened", "@agent fix") | {"action": action}
    assert "starts no work" in reason(name, payload)


@BOTH
def test_a_control_command_in_a_new_issue_is_work(name: str, field: str) -> None:
    found = started(name, done(name, "opened", "@agent stop"))
    assert (found.command, found.instruction) == (Command.FIX, "stop")


def test_the_label_starts_work_on_issues_and_pull_requests_with_keys_of_their_own() -> None:
    issue, pull = done("issues", "labeled"), done("pull_request", "labeled", "@agent long ago")
    pull["pull_request"]["id"] = issue["issue"]["id"]
    found = [started("issues", issue), started("pull_request", pull)]
    assert found[0].key != found[1].key
    for trigger in found:
        assert (trigger.kind, trigger.instruction) == (TriggerKind.ISSUE_LABELED, "")
        assert trigger.key.endswith(":Agent:2026-01-02T10:00:00+00:00")


@BOTH
def test_a_label_or_an_account_of_others_starts_nothing(name: str, field: str) -> None:
    for label in ("agents", "bug", ""):
        payload = done(name, "labeled") | {"label": {"name": label}}
        assert "the label isn't agent" in reason(name, payload)
    for assignee in ({"login": "zoe", "id": 1}, None):
        payload = done(name, "assigned") | {"assignee": assignee}
        assert "somebody else" in reason(name, payload)
    for asked in ({"requested_reviewer": {"login": "zoe", "id": 1}}, {"requested_reviewer": None}):
        payload = done("pull_request", "review_requested") | asked
        assert "somebody else" in reason("pull_request", payload)


def test_an_assignment_can_not_be_parsed_without_the_own_login() -> None:
    assert "set bot_login" in reason("issues", done("issues", "assigned"), bot_login="")


def test_a_review_requested_from_resolver_is_a_review() -> None:
    found = started("pull_request", done("pull_request", "review_requested"))
    assert (found.kind, found.command) == (TriggerKind.REVIEW_REQUESTED, Command.REVIEW)


@BOTH
def test_opening_with_mention_label_and_assignee_is_one_request(name: str, field: str) -> None:
    """Of the label, with the words."""
    opened = done(name, "opened", "@agent ask why is this so?")
    labeled = at_once(done(name, "labeled", "@agent ask why is this so?"))
    assigned = at_once(done(name, "assigned", "@agent ask why is this so?"))
    for payload in (opened, labeled, assigned):
        payload[field]["labels"] = [{"name": "agent"}]
    assert "label" in reason(name, opened)
    assert "label" in reason(name, assigned)
    assert started(name, labeled).command is Command.QUESTION


def test_opening_with_mention_and_assignee_is_one_request() -> None:
    started("issues", done("issues", "opened", "@agent fix"))
    assigned = at_once(done("issues", "assigned", "@agent fix"))
    assert "text already asks" in reason("issues", assigned)


def test_a_label_is_about_the_text_only_if_its_author_put_it_on_at_once() -> None:
    """Whoever opened it may not have been allowed to ask."""
    other, later = (at_once(done("issues", "labeled", "@agent delete all"), n) for n in (1, 11))
    other["issue"]["user"] = {"login": "eve", "id": 66, "type": "User"}
    for payload in (other, later):
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
    payload["sender"]["login"] = "mona"
    payload[field]["state"] = "closed"
    assert "closed" in reason(name, payload)


def test_resolvers_own_text_never_asks() -> None:
    """With a person's token our login is not known here."""
    comment = "<!-- resolver:run key=0 -->\n\nFixes #3. Write @agent fix this."
    assert "doesn't ask" in reason("pull_request", done("pull_request", "opened", comment))
    payload = example("issue_comment", "created")
    payload["comment"] |= {"body": comment, "user": payload["sender"]}
    assert "by Resolver itself" in reason("issue_comment", payload)
