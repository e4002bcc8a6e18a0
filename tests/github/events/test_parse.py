"""Tests of parsing comments into triggers, whose keys depend on the event alone."""

import copy
from datetime import UTC, datetime

import pytest

from resolver.models.run import Snapshot, TriggerKind
from tests.github.events.events import Payload, example, reason, started


@pytest.fixture
def comment() -> Payload:
    payload = example("issue_comment", "created")
    payload["comment"]["body"] = "Thanks. @agent please fix this"
    return payload


def test_a_mention_in_a_new_comment_starts_work(comment: Payload) -> None:
    found = started("issue_comment", comment)
    assert (found.kind, found.instruction) == (TriggerKind.ISSUE_COMMENT, "please fix this")
    assert found.key == f"issue_comment:{comment['comment']['id']}"
    assert (found.repository, found.number) == ("Codertocat/Hello-World", 1)
    assert (found.actor.login, found.is_pull_request) == ("Codertocat", False)
    assert found.at == datetime(2019, 5, 15, 15, 20, 21, tzinfo=UTC)
    assert found.comment_id == comment["comment"]["id"]
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
    again["issue"] |= {"title": "edited", "pull_request": {"url": "https://api.github.com/x"}}
    first, second = started("issue_comment", comment), started("issue_comment", again)
    again["comment"]["id"] += 1
    assert first.key == second.key != started("issue_comment", again).key
    assert second.is_pull_request


@pytest.mark.attack
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"action": "edited"}, "edited"),
        ({"action": "deleted"}, "deleted"),
        ({"sender": {"login": "zoe", "id": 1}}, "author"),
        ({"comment": {"user": None}}, "author"),
        *(
            ({"comment": {"created_at": time}}, "created_at")
            for time in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", 1e300, "soon")
        ),
        *(
            ({"repository": {"full_name": name}}, "full_name")
            for name in ("../x", "a/b/c", "a", "a/b\n", "a b/c", "https://evil/a/b")
        ),
        *(({name: None}, name) for name in ("action", "issue", "sender")),
        ({"issue": {"number": None}}, "issue.number"),
    ],
)
def test_another_comment_event_starts_nothing(comment: Payload, changes: Payload, why: str) -> None:
    """A comment of somebody else than the sender, or with impossible values: no run starts."""
    for name, value in changes.items():
        comment[name] = {**comment[name], **value} if isinstance(value, dict) else value
    assert why in reason("issue_comment", comment)


@pytest.mark.attack
@pytest.mark.parametrize(
    ("login", "kind"), [("evil[bot]", "Bot"), ("evil[bot]", "User"), ("acme", "Organization")]
)
def test_a_bot_is_ignored_unless_allowed(comment: Payload, login: str, kind: str) -> None:
    """Another bot mentions the agent: ignored, unless the operator lists it."""
    for account in (comment["comment"]["user"], comment["sender"]):
        account.update(login=login, type=kind)
    assert "isn't a person" in reason("issue_comment", comment)
    assert started("issue_comment", comment, allowed_users=(login.upper(),))
    own = {"bot_login": login.upper(), "allowed_users": (login,)}
    assert reason("issue_comment", comment, **own) == "it was made by Resolver itself"
