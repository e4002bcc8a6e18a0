"""Tests of a request that is withdrawn while its run works, and of one that is delivered late."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.errors import ForgeError, RunStopped
from resolver.events.run_log import RunLog
from resolver.github.client.access import FixedToken, GitHubAccess
from resolver.github.events.starting_events import ListeningPolicy
from resolver.github.github_forge import GitHubForge
from resolver.models.request_status import RequestStatus, RequestText
from resolver.models.run import Actor, Trigger, TriggerKind
from resolver.runs.conversation.watch import (
    find_withdrawal,
    require_standing_request,
)
from resolver.runs.pipeline import _publish
from resolver.runs.stages import StageValues
from tests.parts.github_server.state import Comment, Issue
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import prepared_run, run_request
from tests.runs.scenario import REPOSITORY, Scenario

AT = datetime(2026, 1, 2, tzinfo=UTC)
ASKED = RequestText("@agent please fix this")


def asked(kind: TriggerKind = TriggerKind.ISSUE_COMMENT, **fields: Any) -> Trigger:
    return Trigger(
        key="k", kind=kind, repository=REPOSITORY, number=1, actor=Actor(login="mona"), at=AT
    ).model_copy(update=fields)


COMMENT, LABEL, OPENED, ASSIGNED, REVIEW = (
    TriggerKind.ISSUE_COMMENT,
    TriggerKind.ISSUE_LABELED,
    TriggerKind.ISSUE_OPENED,
    TriggerKind.ISSUE_ASSIGNED,
    TriggerKind.REVIEW_REQUESTED,
)


@pytest.mark.parametrize(
    ("kind", "status", "withdrawal"),
    [
        (COMMENT, RequestStatus(comment=ASKED, has_comment=True), None),
        (COMMENT, RequestStatus(), None),
        (COMMENT, RequestStatus(has_comment=True), "deleted"),
        (COMMENT, RequestStatus(comment=RequestText("never mind"), has_comment=True), "edited"),
        (COMMENT, RequestStatus(comment=RequestText("@agent stop"), has_comment=True), "edited"),
        (COMMENT, RequestStatus(comment=RequestText("> @agent fix"), has_comment=True), "edited"),
        (COMMENT, RequestStatus(exists=False), "#1 was deleted"),
        (COMMENT, RequestStatus(locked=True, comment=ASKED, has_comment=True), "locked"),
        (LABEL, RequestStatus(labels=("bug", "Agent")), None),
        (LABEL, RequestStatus(labels=("bug",)), "label agent was removed"),
        (OPENED, RequestStatus(issue=ASKED), None),
        (OPENED, RequestStatus(issue=RequestText("It is 0.")), "edited"),
        (ASSIGNED, RequestStatus(requested_accounts=("zoe", "Our-Agent[bot]")), None),
        (ASSIGNED, RequestStatus(requested_accounts=("zoe",)), "the assignment of #1 was removed"),
        (REVIEW, RequestStatus(requested_accounts=("our-agent[bot]",)), None),
        (
            REVIEW,
            RequestStatus(requested_accounts=("octo/docs", "zoe")),
            "a review of #1 was removed",
        ),
    ],
)
def test_a_request_is_valid_until_it_is_withdrawn(
    kind: TriggerKind, status: RequestStatus, withdrawal: str | None
) -> None:
    policy = ListeningPolicy(mention="@agent", label="agent", bot_login="our-agent[bot]")
    found = find_withdrawal(asked(kind), status, policy)
    assert (found is None) is (withdrawal is None) and (withdrawal or "") in (found or "")


def lock(scenario: Scenario, issue: Issue) -> None:
    issue.locked = True
    scenario.github.world.note(issue, "locked", issue.author)


def request_of(scenario: Scenario, comment: Comment) -> tuple[Trigger, GitHubForge]:
    """Return the request that the comment makes, and GitHub."""
    trigger = asked(
        comment_id=comment.id,
        at=comment.created_at,
    )
    urls = (scenario.github.api_url, scenario.github.server_url, scenario.github.graphql_url)
    return trigger, GitHubForge(
        GitHubAccess(FixedToken(scenario.token), *urls, attempts=0), REPOSITORY
    )


def test_the_state_of_a_request_is_read(scenario: Scenario) -> None:
    trigger, forge = request_of(scenario, scenario.mention())
    status = forge.request_status(trigger)
    assert status.comment == ASKED and status.has_comment and status.exists
    scenario.issue.locked = True
    assert not forge.request_status(trigger).locked, "it was locked before the request"
    lock(scenario, scenario.issue)
    scenario.github.add_label(scenario.issue, "agent")
    scenario.issue.assignees.append(scenario.github.world.accounts["mona"])
    scenario.issue.state = "closed"
    scenario.issue.comments.clear()
    assert forge.request_status(trigger) == RequestStatus(
        closed=True,
        locked=True,
        labels=("agent",),
        issue=RequestText("2 + 2 gives 0."),
        has_comment=True,
    )
    assert forge.request_status(asked(ASSIGNED)).requested_accounts == ("mona",)
    assert not forge.request_status(asked(number=99)).exists


def test_a_repository_that_can_not_be_seen_is_not_taken_for_a_deleted_issue(
    scenario: Scenario,
) -> None:
    trigger, forge = request_of(scenario, scenario.mention())
    unseen = {"type": "NOT_FOUND", "path": ["repository"], "message": "Could not resolve"}
    answer = {"data": {"repository": None}, "errors": [unseen]}
    scenario.github.fail_next("POST", "/graphql$", 200, body=answer, times=9)
    with pytest.raises(ForgeError, match="404"):
        forge.request_status(trigger)


def test_the_conversation_that_a_start_reads_tells_the_state_of_the_request(
    scenario: Scenario,
) -> None:
    github, comment = scenario.github, scenario.mention()

    def delete() -> None:
        scenario.issue.comments.remove(comment)

    def close() -> None:
        scenario.issue.state = "closed"

    for change in (lambda: None, lambda: github.edit_comment(comment, "never mind"), close, delete):
        change()
        trigger, forge = request_of(scenario, comment)
        trigger = trigger.model_copy(update={"at": comment.created_at})
        forge.find_publication(trigger)
        made = len(github.requests)
        at_start = forge.request_status_at_start(trigger)
        assert len(github.requests) == made
        assert at_start == forge.request_status(trigger)


class ForgeWithoutRequest(MemoryForge):
    """A forge on which the comment of the request was deleted."""

    def request_status(self, trigger: Trigger) -> RequestStatus:
        return RequestStatus(has_comment=trigger.comment_id is not None)


@pytest.mark.attack
def test_the_result_of_a_deleted_request_is_kept_and_not_published(
    values: StageValues, log: RunLog
) -> None:
    """The request is deleted while the run works: the result is kept and not published."""
    assert values.executed is not None
    prepared, forge = prepared_run(values.request), ForgeWithoutRequest()
    values = replace(values, prepared=prepared, log=log)
    with pytest.raises(RunStopped) as stopped:
        list(_publish(values, prepared, values.executed, log, forge))  # type: ignore[arg-type]
    reason = "the comment that asked for it was deleted while the run was working"
    assert (stopped.value.what, stopped.value.withdrawn) == (reason, True)
    assert (forge.pulls, forge.reports) == ({}, [])


@pytest.mark.attack
def test_the_result_is_not_published_for_somebody_who_lost_write_access(
    scenario: Scenario, tmp_path: Path
) -> None:
    """The requester loses write access while the run works: nothing is published."""
    trigger, forge = request_of(scenario, scenario.mention())
    request, settings = replace(run_request(tmp_path), trigger=trigger), load_settings({}, {})
    require_standing_request(request, settings, forge)
    scenario.github.grant("mona", REPOSITORY, "read")
    with pytest.raises(RunStopped) as stopped:
        require_standing_request(request, settings, forge)
    reason = stopped.value.what
    assert "mona has no write access" in reason and "while the run was working" in reason


@pytest.mark.attack
def test_an_old_delivery_of_a_deleted_comment_starts_nothing(scenario: Scenario) -> None:
    """A delivery arrives days after its comment was deleted: no run starts."""
    comment = scenario.mention()
    comment.created_at -= timedelta(days=3)
    comment.updated_at = comment.created_at
    event = scenario.github.event_issue_comment(comment)
    scenario.issue.comments.clear()
    done = scenario.action(event)
    assert done.exit_code == 5, done.stdout + done.stderr
    assert "the comment that asked for it was deleted" in done.stderr
    assert not scenario.work_done() and not scenario.bot_comments()
