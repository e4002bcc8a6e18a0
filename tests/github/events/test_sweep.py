"""Tests of starting work on an issue that was labeled earlier."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from resolver.errors import ForgeError
from resolver.github.client.access import FixedToken, GitHubAccess
from resolver.github.context.labeled_issues import Labeling, labeled_trigger, with_later_time
from resolver.github.events.parse import parse_github_event
from resolver.github.events.payloads import Issue, User
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.starting_events import ListeningPolicy
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Trigger
from tests.parts.github import GitHubServer

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ISSUE = Issue(
    number=3,
    id=77,
    title="A fault",
    body="It is wrong.",
    user=User(login="zoe", id=5),
    created_at=AT,
    updated_at=AT,
)
LABELING = Labeling(
    label="agent",
    by=User(login="mona", id=9),
    at=AT,
    edited_at=None,
    is_open=True,
)
REPOSITORY = "octo/calc"
POLICY = ListeningPolicy(mention="@agent", label="agent")


def trigger(labeling: Labeling | None = LABELING, **more: Any) -> Trigger | IgnoredEvent:
    return labeled_trigger(ISSUE, labeling, REPOSITORY, POLICY.model_copy(update=more))


@pytest.fixture
def forge(github: GitHubServer) -> GitHubForge:
    github.create_repository(REPOSITORY)
    github.add_user("resolver-bot")
    github.grant("resolver-bot", REPOSITORY, "write")
    access = GitHubAccess(
        FixedToken(github.token_for("resolver-bot", REPOSITORY)),
        api_url=github.api_url,
        server_url=github.server_url,
        graphql_url=github.graphql_url,
        pause_between_writes=0.0,
    )
    return GitHubForge(access, REPOSITORY)


def test_a_sweep_gives_the_same_trigger_as_the_event(
    github: GitHubServer, forge: GitHubForge
) -> None:
    issue = github.create_issue(REPOSITORY, "A fault", "It is wrong.", author="zoe")
    github.advance(3)
    event = github.event_issue_labeled(issue, "agent", "mona")
    from_event = parse_github_event(
        "issues", event, ListeningPolicy(mention="@agent", label="agent")
    )
    labeled = forge.labeled("agent")
    [found] = labeled.oldest_first()
    swept = labeled_trigger(found, labeled.labeling(found), REPOSITORY, POLICY)
    assert isinstance(swept, Trigger) and isinstance(from_event, Trigger)
    assert swept.snapshot is not None and from_event.snapshot is not None
    seen = from_event.snapshot.model_copy(update={"labels": None})  # a list does not say them
    assert swept == from_event.model_copy(update={"snapshot": seen})


def test_the_time_of_the_event_may_be_a_second_later() -> None:
    first = trigger()
    assert isinstance(first, Trigger)
    second = with_later_time(first, ISSUE, LABELING)
    assert second.key == "labeled:77:agent:2026-01-02T03:04:06+00:00"
    assert second == first.model_copy(update={"key": second.key, "at": AT + timedelta(seconds=1)})


BOT = User(login="helper[bot]", id=5, type="Bot")
EARLIER = replace(LABELING, edited_at=AT - timedelta(seconds=1))


@pytest.mark.parametrize(
    ("labeling", "settings", "why"),
    [
        (replace(LABELING, edited_at=AT), {}, "label it again"),
        (replace(LABELING, edited_at=AT + timedelta(hours=1)), {}, "label it again"),
        (EARLIER, {}, None),
        (replace(LABELING, by=BOT), {}, "isn't a person"),
        (replace(LABELING, by=BOT), {"allowed_users": ["helper[bot]"]}, None),
        (LABELING, {"bot_login": "Mona"}, "it was made by Resolver itself"),
        (replace(LABELING, by=None), {}, "no longer exists"),
        (replace(LABELING, is_open=False), {}, "closed in the meantime"),
        (None, {}, "removed in the meantime"),
        (replace(LABELING, pull_request="https://x/pull/1"), {}, "open pull request"),
    ],
)
def test_a_labeling_that_was_not_seen_or_not_asked_for_is_skipped(
    labeling: Labeling | None, settings: dict[str, Any], why: str | None
) -> None:
    found = trigger(labeling, **settings)
    assert isinstance(found, Trigger) if why is None else why in getattr(found, "reason", "")


def test_only_open_issues_with_the_label_are_listed_and_the_oldest_first(
    github: GitHubServer, forge: GitHubForge
) -> None:
    first = github.create_issue(REPOSITORY, "One", author="zoe", labels=("agent",))
    closed = github.create_issue(REPOSITORY, "Two", author="zoe", labels=("agent",))
    closed.state = "closed"
    github.create_issue(REPOSITORY, "Three", author="zoe", labels=("other",))
    github.commit(REPOSITORY, "topic", {"a": "b"})
    github.add_label(github.create_pull(REPOSITORY, "topic"), "agent")
    last = github.create_issue(REPOSITORY, "Five", None, author="zoe", labels=("Agent",))
    found = forge.labeled("agent").oldest_first()
    assert [issue.number for issue in found] == [first.number, last.number]
    swept = labeled_trigger(found[1], LABELING, REPOSITORY, POLICY)
    assert isinstance(swept, Trigger) and swept.snapshot is not None
    assert swept.snapshot.body == ""


def test_the_last_labeling_counts(github: GitHubServer, forge: GitHubForge) -> None:
    issue = github.create_issue(REPOSITORY, "One", author="zoe", labels=("agent", "bug"))
    labeled = forge.labeled("agent")
    [found] = labeled.oldest_first()
    github.remove_label(issue, "agent")
    assert labeled.labeling(found) is None
    github.edit_issue(issue, title="Renamed")
    github.advance(60)
    for _ in range(40):
        github.add_label(issue, "agent", "mona")
        github.remove_label(issue, "agent")
    github.add_label(issue, "agent", "mona")
    github.add_label(issue, "late", "zoe")
    labeling = labeled.labeling(found)
    assert labeling is not None and labeling.by is not None and labeling.edited_at is not None
    assert (labeling.by.login, labeling.is_open) == ("mona", True)
    assert labeling.edited_at < labeling.at
    for _ in range(50):
        github.add_label(issue, "late", "zoe")
        github.remove_label(issue, "late")
    with pytest.raises(ForgeError, match="too many events"):
        labeled.labeling(found)


def test_an_open_pull_request_of_a_person_that_closes_the_issue_is_found_with_its_author(
    github: GitHubServer, forge: GitHubForge
) -> None:
    issue = github.create_issue(REPOSITORY, "One", author="zoe", labels=("agent",))
    github.commit(REPOSITORY, "carls", {"a": "b"})
    github.add_user("carl")
    text = f"Fixes #{issue.number}"
    pull = github.create_pull(REPOSITORY, "carls", "Fix it", text, author="carl")
    [found] = forge.labeled("agent").oldest_first()
    labeling = forge.labeled("agent").labeling(found)
    assert labeling is not None
    assert labeling.pull_request is not None
    assert labeling.pull_request.endswith(f"/pull/{pull.number}")
    assert "pull request of carl closes it" in getattr(trigger(labeling), "reason", "")
    pull.state = "closed"
    closed = forge.labeled("agent").labeling(found)
    assert closed is not None and closed.pull_request is None
