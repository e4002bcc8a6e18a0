"""A request that is taken back while its run works, and one whose delivery arrives late."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.controller.control import Control, Stop
from resolver.github.client.access import GitHubAccess
from resolver.github.context.request_status import (
    RequestStatus,
    RequestText,
    read_request_status,
)
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Actor, Trigger, TriggerKind
from resolver.runs.conversation.watch import CommentWatch
from resolver.runs.withdrawal import find_change_since_delivery, find_withdrawal
from tests.parts.github_server.state import Comment, Issue
from tests.parts.model_endpoint import Answer
from tests.parts.runs import finish
from tests.runs.test_github import FIX, REPOSITORY, SUMMARY, Scene, scene
from tests.runs.test_request_counts import SELDOM

__all__ = ["scene"]

AT = datetime(2026, 1, 2, tzinfo=UTC)
ASKED = RequestText("@agent please fix this")


def asked(kind: TriggerKind = TriggerKind.ISSUE_COMMENT, **fields: Any) -> Trigger:
    return Trigger(
        key="k", kind=kind, repository=REPOSITORY, number=1, actor=Actor(login="mona"), at=AT
    ).model_copy(update=fields)


COMMENT, LABEL, OPENED = (
    TriggerKind.ISSUE_COMMENT,
    TriggerKind.ISSUE_LABELED,
    TriggerKind.ISSUE_OPENED,
)


@pytest.mark.parametrize(
    ("kind", "status", "withdrawal"),
    [
        (COMMENT, RequestStatus(comment=ASKED, has_comment=True), ""),
        (COMMENT, RequestStatus(), ""),
        (COMMENT, RequestStatus(has_comment=True), "deleted"),
        (COMMENT, RequestStatus(comment=RequestText("never mind"), has_comment=True), "edited"),
        (COMMENT, RequestStatus(comment=RequestText("@agent stop"), has_comment=True), "edited"),
        (COMMENT, RequestStatus(comment=RequestText("> @agent fix"), has_comment=True), "edited"),
        (COMMENT, RequestStatus(exists=False), "#1 was deleted"),
        (COMMENT, RequestStatus(closed=True, comment=ASKED, has_comment=True), "closed"),
        (COMMENT, RequestStatus(locked=True, comment=ASKED, has_comment=True), "locked"),
        (LABEL, RequestStatus(labels=("bug", "Agent")), ""),
        (LABEL, RequestStatus(labels=("bug",)), "label agent was removed"),
        (OPENED, RequestStatus(issue=ASKED), ""),
        (OPENED, RequestStatus(issue=RequestText("It is 0.")), "edited"),
    ],
)
def test_a_request_stands_until_it_is_taken_back(
    kind: TriggerKind, status: RequestStatus, withdrawal: str
) -> None:
    found = find_withdrawal(asked(kind), status, "@agent", "agent")
    assert withdrawal in found and bool(found) == bool(withdrawal)


def test_an_old_delivery_has_to_be_what_the_comment_says() -> None:
    edits = (None, AT - timedelta(hours=1), AT + timedelta(hours=1))
    statuses = [
        RequestStatus(comment=RequestText(ASKED.body, at), has_comment=True) for at in edits
    ]
    found = [find_change_since_delivery(asked(), each, "@agent", "agent") for each in statuses]
    assert found == ["", "", "the comment that asked for it was edited since"]


def lock(scene: Scene, issue: Issue) -> None:
    issue.locked = True
    scene.github.world.note(issue, "locked", issue.author)


def test_the_state_of_a_request_is_read_in_one_query(scene: Scene) -> None:
    comment = scene.mention()
    trigger = asked(
        comment_id=comment.id,
        comment_node=scene.github.event_issue_comment(comment)["comment"]["node_id"],
        at=comment.created_at,
    )
    urls = (scene.github.api_url, scene.github.server_url, scene.github.graphql_url)
    access = GitHubAccess(scene.token, *urls, attempts=0)
    status = read_request_status(access, trigger)
    assert status.comment == ASKED and status.has_comment and status.exists
    scene.issue.locked = True
    assert not read_request_status(access, trigger).locked, "it was locked before the request"
    lock(scene, scene.issue)
    scene.github.add_label(scene.issue, "agent")
    scene.issue.state = "closed"
    scene.issue.comments.clear()
    status = read_request_status(access, trigger)
    assert status == RequestStatus(
        closed=True,
        locked=True,
        labels=("agent",),
        issue=RequestText("2 + 2 gives 0."),
        has_comment=True,
    )
    assert not read_request_status(access, asked(number=99)).exists


def withdraw(scene: Scene, comment: Comment, how: Callable[[], object]) -> list[str]:
    """Run with `how` called before the agent's last reply; return the bot's comments."""

    def ended(_: dict[str, Any]) -> Answer:
        how()
        return finish(SUMMARY)

    answers: list[Callable[[dict[str, Any]], Answer]] = [lambda _: FIX, ended]
    scene.endpoint.answer_with(lambda body: answers.pop(0)(body))
    done = scene.action(scene.github.event_issue_comment(comment), **SELDOM)
    assert done.exit_code == 1, done.stdout + done.stderr
    assert not scene.branches() and not scene.pulls()
    return scene.bot_comments()


def test_the_result_of_a_deleted_request_is_kept_and_not_published(scene: Scene) -> None:
    comment = scene.mention()
    [told] = withdraw(scene, comment, lambda: scene.issue.comments.remove(comment))
    assert "the comment that asked for it was deleted while the run was working" in told
    assert "@agent publish" in told


def test_the_result_is_not_published_for_somebody_who_lost_write_access(scene: Scene) -> None:
    [told] = withdraw(
        scene, scene.mention(), lambda: scene.github.grant("mona", REPOSITORY, "read")
    )
    assert "mona has no write access" in told and "while the run was working" in told


class Polls(threading.Event):
    """Never set before the polls are over; acts before the last one."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._steps: list[Callable[[], object]] = [lambda: None, act]

    def wait(self, timeout: float | None = None) -> bool:
        if not self._steps:
            return True
        self._steps.pop(0)()
        return False


def watch(scene: Scene, act: Callable[[Comment], object]) -> Control:
    """Poll twice, with `act` called in between; return what the run was asked."""
    comment, control = scene.mention(), Control()
    trigger = asked(
        comment_id=comment.id,
        comment_node=scene.github.event_issue_comment(comment)["comment"]["node_id"],
        at=comment.created_at,
    )
    urls = (scene.github.api_url, scene.github.server_url, scene.github.graphql_url)
    forge = GitHubForge(GitHubAccess(scene.token, *urls, attempts=0), REPOSITORY)
    settings = load_settings({}, {})
    CommentWatch(trigger, control, lambda: forge, [1], settings, 1.0).run(
        Polls(lambda: act(comment))
    )
    return control


def test_the_poll_of_comments_stops_the_run_of_a_deleted_request(scene: Scene) -> None:
    control = watch(scene, lambda comment: scene.issue.comments.remove(comment))
    assert control.take() == Stop(reason="the comment that asked for it was deleted")


def test_the_poll_of_comments_lets_a_reworded_request_go_on(scene: Scene) -> None:
    control = watch(scene, lambda c: scene.github.edit_comment(c, "@agent please fix this!"))
    assert control.is_empty


def test_an_old_delivery_of_a_deleted_comment_starts_nothing(scene: Scene) -> None:
    event = scene.github.event_issue_comment(scene.mention())
    scene.issue.comments.clear()
    done = scene.action(event, RESOLVER_MAX_DELIVERY_AGE_SECONDS="0")
    assert done.exit_code == 5, done.stdout + done.stderr
    assert "the comment that asked for it was deleted" in done.stderr
    assert not scene.work_done() and not scene.bot_comments()
