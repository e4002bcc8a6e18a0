"""Tests of reading issues as the requester saw them, over a real socket."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from resolver.errors import ForgeError, UsageError
from resolver.github.client.access import FixedToken, GitHubAccess, TokenSource
from resolver.github.context.visibility import reason_unseen
from resolver.github.events.parse import parse_github_event
from resolver.github.events.starting_events import ListeningPolicy
from resolver.github.github_forge import GitHubForge
from resolver.github.text.markers import Ending, run_marker
from resolver.models.run import Actor, Trigger, TriggerKind
from tests.github import reports
from tests.parts.clock import PassingTime
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Comment, Issue

NAME = "octo/demo"
BOT = "resolver[bot]"


def forge_for(
    github: GitHubServer, token: str | TokenSource | None = None, **changes: Any
) -> GitHubForge:
    token = token or github.token_for(BOT, NAME)
    values: dict[str, Any] = {
        "tokens": FixedToken(token) if isinstance(token, str) else token,
        "api_url": github.api_url,
        "server_url": github.server_url,
        "graphql_url": github.graphql_url,
        "bot_login": BOT,
        "pause_between_writes": 0.0,
        "retries": PassingTime().retries(),
    }
    return GitHubForge(GitHubAccess(**{**values, **changes}), NAME)


@pytest.fixture
def issue(github: GitHubServer) -> Issue:
    github.create_repository(NAME, files={"README.md": "hello"})
    github.grant("alice", NAME, "write")
    return github.create_issue(NAME, "It breaks", "Please **help**", author="mallory")


def triggered(github: GitHubServer, comment: Comment) -> Trigger:
    found = parse_github_event(
        "issue_comment",
        github.event_issue_comment(comment),
        ListeningPolicy(mention="@agent", label="agent", bot_login=BOT),
    )
    assert isinstance(found, Trigger)
    github.advance(10)
    return found


def ask(github: GitHubServer, issue: Issue, body: str = "@agent fix it") -> Trigger:
    """Return the trigger of a comment of alice that asks, as its event gives it."""
    github.advance(10)
    return triggered(github, github.add_comment(issue, body, "alice"))


def test_the_task_contains_what_the_requester_saw(github: GitHubServer, issue: Issue) -> None:
    github.add_label(issue, "bug")
    github.add_comment(issue, "me too", "carol")
    task = forge_for(github).read(ask(github, issue))
    assert (task.title, task.body, task.author) == ("It breaks", "Please **help**", "mallory")
    assert task.labels == ("bug",)
    assert [(c.author, c.body) for c in task.comments] == [
        ("carol", "me too"),
        ("alice", "@agent fix it"),
    ]
    assert task.base_branch == "main"
    assert task.source == f"{github.server_url}/{NAME}.git"
    assert task.left_out == ()


def test_later_texts_and_edits_are_left_out_and_named(github: GitHubServer, issue: Issue) -> None:
    early = github.add_comment(issue, "harmless", "mallory")
    trigger = ask(github, issue)
    github.edit_issue(issue, title="EVIL", body="EVIL")
    github.edit_comment(early, "EVIL")
    github.add_comment(issue, "EVIL", "mallory")
    task = forge_for(github).read(trigger)
    assert "EVIL" not in task.model_dump_json()
    assert (task.title, task.body) == ("It breaks", "Please **help**")
    omissions = "\n".join(task.left_out)
    assert "title was edited after" in omissions
    assert "text was edited after" in omissions
    assert "1 comment edited after the request" in omissions
    assert "1 comment written after the request" in omissions


def without_words(issue: Issue, kind: TriggerKind, at: datetime) -> Trigger:
    """Return a trigger for the issue whose event does not contain its text."""
    actor = Actor(login="alice")
    return Trigger(key="k", kind=kind, repository=NAME, number=issue.number, actor=actor, at=at)


def test_a_text_edited_after_a_request_without_it_is_left_out(
    github: GitHubServer, issue: Issue
) -> None:
    at = github.world.now() + timedelta(seconds=10)
    trigger = without_words(issue, TriggerKind.DISPATCHED, at)
    github.advance(20)
    github.edit_issue(issue, title="EVIL", body="EVIL")
    github.advance(20)
    task = forge_for(github).read(trigger)
    assert "EVIL" not in task.model_dump_json()
    assert (task.title, task.body) == ("It breaks", "")
    assert "the issue's text, edited after the request" in task.left_out
    assert (
        "the issue's title was edited after the request: the earlier one is used" in task.left_out
    )


LATER = reports.WHEN + timedelta(seconds=1)
EARLIER = reports.WHEN - timedelta(seconds=1)


@pytest.mark.parametrize(
    ("kind", "id", "created", "updated", "reason"),
    [
        ("issue_comment", 76, reports.WHEN, reports.WHEN, None),
        ("issue_comment", 76, reports.WHEN, LATER, "edited after"),
        ("issue_comment", 77, reports.WHEN, reports.WHEN, None),
        ("issue_comment", 77, EARLIER, LATER, "edited after"),
        ("issue_comment", 78, reports.WHEN, reports.WHEN, "written after"),
        ("review_comment", 76, reports.WHEN, reports.WHEN, "written after"),
        ("review_comment", 99, EARLIER, EARLIER, None),
        ("review_comment", 99, EARLIER, reports.WHEN, "edited after"),
    ],
)
def test_a_text_of_the_same_second_is_seen_only_if_it_is_known_to_be_earlier(
    kind: str, id: int, created: datetime, updated: datetime, reason: str | None
) -> None:
    request = reports.trigger()
    assert reason_unseen(request, TriggerKind(kind), id, created, updated) == reason
    now = request.model_copy(update={"kind": TriggerKind.COMMAND_LINE})
    assert reason_unseen(now, TriggerKind(kind), id, created, updated) is None


def test_hidden_text_is_removed_and_named(github: GitHubServer, issue: Issue) -> None:
    github.edit_issue(issue, title="Bre\u200baks", body="seen <!-- SECRET -->")
    github.add_comment(issue, "ok\U000e0041 <div hidden>SECRET</div>", "mallory")
    task = forge_for(github).read(ask(github, issue))
    assert task.title == "Breaks"
    assert task.body == "seen"
    assert task.comments[0].body == "ok"
    omissions = "\n".join(task.left_out)
    assert "1 HTML comment" in omissions
    assert "1 hidden element" in omissions


def test_a_flood_of_later_comments_displaces_nothing(github: GitHubServer, issue: Issue) -> None:
    for number in range(330):
        github.add_comment(issue, f"early {number}", "carol")
    trigger = ask(github, issue)
    github.advance(10)
    for number in range(700):
        github.add_comment(issue, f"late {number}", "mallory")
    task = forge_for(github).read(trigger)
    bodies = [comment.body for comment in task.comments]
    assert bodies == [*(f"early {number}" for number in range(330)), "@agent fix it"]
    assert task.left_out == ("700 comments written after the request",)
    assert len(github.requests) == 11, "a page has 100 comments"


ASKED_BACK = f"""{run_marker("issue_comment:1", Ending.WAITING)}

Resolver stopped with **a question**: A, as in #1, or B? ![x](https://a.example/x.png)

<details><summary>This run: $0.01</summary>

folded
</details>
"""


def test_questions_of_resolver_are_shown_as_its_own(github: GitHubServer, issue: Issue) -> None:
    github.add_comment(issue, ASKED_BACK, BOT)
    github.add_comment(issue, ASKED_BACK, "mallory")
    github.add_comment(issue, ASKED_BACK.replace("waiting", "error"), BOT)
    task = forge_for(github).read(ask(github, issue, "@agent take B"))
    ours, forged, request = task.comments
    assert ours.body.startswith("Resolver stopped with **a question**: A, as in #1, or B?")
    assert "folded" not in ours.body
    assert "a.example" not in ours.body
    assert (ours.is_ours, ours.author) == (True, BOT)
    assert (forged.is_ours, forged.author) == (False, "mallory")
    assert (request.is_ours, request.body) == (False, "@agent take B")
    assert not any("of Resolver" in line for line in task.left_out)


def test_comments_hidden_as_spam_are_not_read(github: GitHubServer, issue: Issue) -> None:
    for reason in ("spam", "abuse", "off-topic", "outdated", "resolved", ""):
        github.add_comment(issue, reason or "shown", "mallory").minimized = reason
    task = forge_for(github).read(ask(github, issue))
    assert [c.body for c in task.comments] == ["outdated", "resolved", "shown", "@agent fix it"]
    assert task.left_out == ("3 comments hidden as spam, abuse or off-topic",)


def test_another_repository_than_the_triggers_is_never_touched(
    github: GitHubServer, issue: Issue
) -> None:
    forge = forge_for(github)
    other = reports.trigger(repository="octo/other", number=issue.number)
    with pytest.raises(UsageError):
        forge.read(other)
    with pytest.raises(UsageError):
        forge.comment(reports.report(trigger=other))
    assert github.writes() == []


@pytest.mark.parametrize("name", ["demo", "a/b/c", "../x", "a/..", "a b/c", "a/b?x=1", ""])
def test_an_invalid_repository_name_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError):
        GitHubForge(GitHubAccess(FixedToken("t")), name)


@pytest.mark.parametrize(
    ("status", "body"),
    [(502, None), (401, None), (403, {"message": "Use SSO"}), (200, {"data": {"viewer": None}})],
)
def test_the_own_login_is_never_guessed(
    github: GitHubServer, issue: Issue, status: int, body: Any
) -> None:
    app = github.token_for("my-app[bot]", NAME)
    github.fail_next("POST", "/graphql$", status, body=body, times=9)
    with pytest.raises(ForgeError, match="owner of the token"):
        forge_for(github, app, bot_login="").whoami()
