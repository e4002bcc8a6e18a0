"""Tests of parsing events into triggers, whose keys depend on the event alone."""

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
    assert found.kind is TriggerKind.ISSUE_COMMENT
    assert found.key == f"issue_comment:{comment['comment']['id']}"
    assert (found.repository, found.number) == ("Codertocat/Hello-World", 1)
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
        ({"comment": {"created_at": "0001-01-01T00:00:00+14:00"}}, "created_at"),
        ({"comment": {"created_at": "9999-12-31T23:59:59-12:00"}}, "created_at"),
        ({"comment": {"created_at": 1e300}}, "created_at"),
        ({"comment": {"created_at": "soon"}}, "created_at"),
        *(
            ({"repository": {"full_name": name}}, "full_name")
            for name in ("../x", "a/b/c", "a", "a/b\n", "a b/c", "https://evil/a/b")
        ),
    ],
)
def test_another_comment_event_starts_nothing(comment: Payload, changes: Payload, why: str) -> None:
    """A comment of somebody else than the sender, or with impossible values: no run starts."""
    for name, value in changes.items():
        comment[name] = {**comment[name], **value} if isinstance(value, dict) else value
    assert why in reason("issue_comment", comment)


@pytest.mark.attack
def test_a_bot_is_ignored_unless_allowed(comment: Payload) -> None:
    """Another bot mentions the agent: ignored, unless the operator lists it."""
    for account in (comment["comment"]["user"], comment["sender"]):
        account.update(login="evil[bot]", type="Bot")
    assert "isn't a person" in reason("issue_comment", comment)
    assert started("issue_comment", comment, allowed_users=("Evil[bot]",))
    own = {"bot_login": "Evil[bot]", "allowed_users": ("evil[bot]",)}
    assert reason("issue_comment", comment, **own) == "it was made by Resolver itself"


@pytest.mark.parametrize(
    "path", ["action", "issue", "issue.number", "comment.created_at", "sender.id"]
)
def test_a_payload_without_a_field_is_ignored_with_its_name(comment: Payload, path: str) -> None:
    *parents, last = path.split(".")
    where = comment
    for parent in parents:
        where = where[parent]
    del where[last]
    assert path in reason("issue_comment", comment)
