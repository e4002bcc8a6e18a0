"""Tests of starting work on an issue that was labeled earlier."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from resolver.errors import ForgeError
from resolver.github.context.labeled_issues import Labeling, labeled_trigger, with_later_time
from resolver.github.events.parse import parse_github_event
from resolver.github.events.payloads import Issue, User
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.starting_events import ListeningPolicy
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Trigger
from tests.github.test_github_reading import NAME, forge_for
from tests.parts.events import Events
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
LABELING = Labeling(label="agent", by=User(login="mona", id=9), at=AT, edited_at=None, is_open=True)
POLICY = ListeningPolicy(mention="@agent", label="agent")


def trigger(
    labeling: Labeling | None = LABELING, issue: Issue = ISSUE, **more: Any
) -> Trigger | IgnoredEvent:
    return labeled_trigger(issue, labeling, NAME, POLICY.model_copy(update=more))


@pytest.fixture
def forge(github: GitHubServer) -> GitHubForge:
    github.create_repository(NAME)
    return forge_for(github)


def test_a_sweep_gives_the_same_trigger_as_the_event(
    github: GitHubServer, forge: GitHubForge
) -> None:
    issue = github.create_issue(NAME, "A fault", "It is wrong.", author="zoe")
    github.advance(3)
    github.add_label(issue, "agent", "mona")
    event = Events(github, NAME).subject(issue, "labeled", "mona", label={"name": "agent"})
    from_event = parse_github_event("issues", event, POLICY)
    labeled = forge.labeled("agent")
    [found] = labeled.oldest_first()
    swept = trigger(labeled.labeling(found), found)
    assert isinstance(swept, Trigger) and isinstance(from_event, Trigger)
    assert from_event.snapshot is not None
    seen = from_event.snapshot.model_copy(update={"labels": None})  # a list does not say them
    assert swept == from_event.model_copy(update={"snapshot": seen})
    # The time of the event may be a second later.
    later = with_later_time(swept, found, replace(LABELING, at=swept.at))
    at = swept.at + timedelta(seconds=1)
    assert later.key == f"labeled:{found.id}:agent:{at.isoformat()}"
    assert later == swept.model_copy(update={"key": later.key, "at": at})


BOT = User(login="helper[bot]", id=5, type="Bot")
EARLIER = replace(LABELING, edited_at=AT - timedelta(seconds=1))


@pytest.mark.parametrize(
    ("labeling", "settings", "why"),
    [
        (replace(LABELING, edited_at=AT), {}, "label it again"),
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
    first = github.create_issue(NAME, "One", author="zoe", labels=("agent",))
    github.create_issue(NAME, "Two", author="zoe", labels=("agent",)).state = "closed"
    github.create_issue(NAME, "Three", author="zoe", labels=("other",))
    github.commit(NAME, "topic", {"a": "b"})
    github.add_label(github.create_pull(NAME, "topic"), "agent")
    last = github.create_issue(NAME, "Five", None, author="zoe", labels=("Agent",))
    found = forge.labeled("agent").oldest_first()
    assert [issue.number for issue in found] == [first.number, last.number]
    swept = trigger(issue=found[1])
    assert isinstance(swept, Trigger) and swept.snapshot is not None
    assert swept.snapshot.body == ""


def test_the_last_labeling_counts(github: GitHubServer, forge: GitHubForge) -> None:
    issue = github.create_issue(NAME, "One", author="zoe", labels=("agent", "bug"))
    labeled = forge.labeled("agent")
    [found] = labeled.oldest_first()
    github.remove_label(issue, "agent")
    assert labeled.labeling(found) is None
    github.edit_issue(issue, title="Renamed")
    github.advance(60)
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
    issue = github.create_issue(NAME, "One", author="zoe", labels=("agent",))
    github.commit(NAME, "carls", {"a": "b"})
    github.add_user("carl")
    pull = github.create_pull(NAME, "carls", "Fix it", f"Fixes #{issue.number}", author="carl")
    labeled = forge.labeled("agent")
    [found] = labeled.oldest_first()
    labeling = labeled.labeling(found)
    assert labeling is not None and (labeling.pull_request or "").endswith(f"/pull/{pull.number}")
    assert "pull request of carl closes it" in getattr(trigger(labeling), "reason", "")
    pull.state = "closed"
    closed = labeled.labeling(found)
    assert closed is not None and closed.pull_request is None
