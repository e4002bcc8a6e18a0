"""Tests of whether a request still stands: before its run, and before its result is published."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.errors import ForgeError, Refused, RunStopped
from resolver.events.run_log import RunLog
from resolver.github.events.starting_events import ListeningPolicy
from resolver.models.request_status import RequestStatus, RequestText
from resolver.models.run import Command, Trigger, TriggerKind
from resolver.runs.conversation.watch import (
    find_withdrawal,
    require_open_request,
    require_standing_request,
)
from resolver.runs.pipeline import _publish, run_pipeline
from resolver.runs.stages import RunRequest
from tests.github import reports
from tests.github.test_github_reading import forge_for, issue, triggered
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.memory_forge import MemoryForge
from tests.runs.conftest import log
from tests.runs.plain_values import executed_values, prepared_run, run_request

__all__ = ["issue", "log"]

STANDS = RequestStatus(comment=RequestText("@agent fix"), has_comment=True)
DELETED = RequestStatus(has_comment=True)
SETTINGS = load_settings({}, {"RESOLVER_PACE": '{"first_wait": 0.01}'})


@dataclass
class AnsweringForge(MemoryForge):
    """A forge that answers what has become of a request, in turn; an error is raised."""

    answers: list[RequestStatus | ForgeError] = field(default_factory=list)

    def whoami(self) -> str:
        return "our-agent[bot]"

    def request_status(self, trigger: Trigger) -> RequestStatus:  # type: ignore[override]
        answer = self.answers.pop(0)
        if isinstance(answer, ForgeError):
            raise answer
        return answer


def forge(*answers: RequestStatus | ForgeError) -> AnsweringForge:
    return AnsweringForge(answers=list(answers))


def error(cause: str) -> ForgeError:
    failed = ForgeError("GitHub can't be asked", "try again")
    failed.cause = cause
    return failed


@pytest.fixture
def request_for_run(tmp_path: Path) -> RunRequest:
    return run_request(tmp_path)


def test_a_result_waits_for_a_github_that_is_down_and_for_no_other_error(
    request_for_run: RunRequest,
) -> None:
    asked = forge(error("forge_down"), error("forge_down"), STANDS)
    require_standing_request(request_for_run, SETTINGS, asked)
    assert asked.answers == []
    for cause in ("bad_credentials", "unknown_repository"):
        refused = forge(error(cause), STANDS)
        with pytest.raises(ForgeError):
            require_standing_request(request_for_run, SETTINGS, refused)
        assert refused.answers == [STANDS]


@pytest.mark.parametrize(
    "changes",
    [
        {"publish": False},
        {"by_operator": True},
        {"trigger": reports.trigger(number=None)},
    ],
)
def test_where_no_request_can_be_withdrawn_github_is_not_asked(
    request_for_run: RunRequest, changes: dict[str, Any]
) -> None:
    require_standing_request(replace(request_for_run, **changes), SETTINGS, forge())
    require_standing_request(request_for_run, SETTINGS, None)


@pytest.mark.attack
@pytest.mark.parametrize("status", [DELETED, replace(STANDS, comment=RequestText("never mind"))])
def test_a_request_that_was_taken_back_before_its_run_starts_is_refused_silently(
    request_for_run: RunRequest, status: RequestStatus
) -> None:
    """A delivery arrives days after its comment was deleted: no run starts."""
    asked = forge(status)
    ended = run_pipeline(request_for_run, asked, lambda _: None)
    assert ended.exit_code == 5 and "before the run started" in ended.outcome_file.reason
    assert (asked.reports, asked.acknowledged) == ([], [])


@pytest.mark.attack
def test_the_result_is_not_published_for_somebody_who_lost_write_access(
    request_for_run: RunRequest,
) -> None:
    """The requester loses write access while the run works: nothing is published."""
    require_standing_request(request_for_run, SETTINGS, forge(STANDS))
    reader = replace(forge(STANDS), level="read")
    with pytest.raises(RunStopped, match=r"has no write access .* while the run was working"):
        require_standing_request(request_for_run, SETTINGS, reader)


@pytest.mark.attack
def test_the_result_of_a_deleted_request_is_kept_and_not_published(
    request_for_run: RunRequest, log: RunLog
) -> None:
    """The request is deleted while the run works: the result is kept and not published."""
    values, asked = executed_values(request_for_run), forge(DELETED)
    prepared = prepared_run(request_for_run)
    values = replace(values, prepared=prepared, log=log)
    assert values.executed is not None
    with pytest.raises(RunStopped, match="was deleted while the run was working") as stopped:
        list(_publish(values, prepared, values.executed, log, asked))
    assert stopped.value.withdrawn
    assert (asked.pulls, asked.reports) == ({}, [])


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
        (COMMENT, STANDS, None),
        (COMMENT, RequestStatus(), None),
        (COMMENT, DELETED, "deleted"),
        (COMMENT, replace(STANDS, comment=RequestText("@agent stop")), "edited"),
        (COMMENT, replace(STANDS, comment=RequestText("> @agent fix")), "edited"),
        (COMMENT, RequestStatus(exists=False), "#12 was deleted"),
        (COMMENT, replace(STANDS, locked=True), "locked"),
        (LABEL, RequestStatus(labels=("bug", "Agent")), None),
        (LABEL, RequestStatus(labels=("bug",)), "label agent was removed"),
        (OPENED, RequestStatus(issue=RequestText("It is 0.")), "edited"),
        (ASSIGNED, RequestStatus(requested_accounts=("zoe", "Our-Agent[bot]")), None),
        (ASSIGNED, RequestStatus(requested_accounts=("zoe",)), "the assignment of #12 was removed"),
        (REVIEW, RequestStatus(requested_accounts=("zoe",)), "a review of #12 was removed"),
    ],
)
def test_a_request_stands_until_it_is_withdrawn(
    kind: TriggerKind, status: RequestStatus, withdrawal: str | None
) -> None:
    policy = ListeningPolicy(mention="@agent", label="agent", bot_login="our-agent[bot]")
    found = find_withdrawal(reports.trigger(kind=kind), status, policy)
    assert (found is None) is (withdrawal is None) and (withdrawal or "") in (found or "")


@pytest.fixture
def asked(github: GitHubServer, issue: Issue) -> Trigger:
    """A request in a comment on an issue of a GitHub over a real socket."""
    return triggered(github, github.add_comment(issue, "@agent please fix this", "alice"))


def test_the_state_of_a_request_is_read(github: GitHubServer, issue: Issue, asked: Trigger) -> None:
    reader = forge_for(github)
    status = reader.request_status(asked)
    assert status.comment == RequestText("@agent please fix this")
    assert status.has_comment and status.exists
    issue.locked = True
    assert not reader.request_status(asked).locked, "it was locked before the request"
    github.world.note(issue, "locked", issue.author)
    github.add_label(issue, "agent")
    issue.assignees.append(github.world.accounts["alice"])
    issue.state = "closed"
    issue.comments.clear()
    assert reader.request_status(asked) == RequestStatus(
        closed=True,
        locked=True,
        labels=("agent",),
        issue=RequestText(issue.body or ""),
        has_comment=True,
    )
    assigned = asked.model_copy(update={"kind": ASSIGNED, "comment_id": None})
    assert reader.request_status(assigned).requested_accounts == ("alice",)
    assert not reader.request_status(asked.model_copy(update={"number": 99})).exists


def test_an_empty_repository_is_called_one(github: GitHubServer, asked: Trigger) -> None:
    github.repository(asked.repository).git.git("update-ref", "-d", "refs/heads/main")
    with pytest.raises(ForgeError, match="is empty") as raised:
        forge_for(github).read(asked)
    assert raised.value.next_step.startswith("push a first commit")


def test_a_repository_that_can_not_be_seen_is_not_taken_for_a_deleted_issue(
    github: GitHubServer, asked: Trigger
) -> None:
    unseen = {"type": "NOT_FOUND", "path": ["repository"], "message": "Could not resolve"}
    answer = {"data": {"repository": None}, "errors": [unseen]}
    github.fail_next("POST", "/graphql$", 200, body=answer, times=9)
    with pytest.raises(ForgeError, match="404"):
        forge_for(github).request_status(asked)


CLOSED = replace(STANDS, closed=True)
REOPEN = "reopen #12, then ask again"
PUBLISH = "reopen #12 and comment `@agent publish`, or comment `@agent publish anyway`"


@pytest.mark.parametrize(
    ("command", "instruction", "next_step", "next_step_at_end"),
    [
        (Command.FIX, "fix it", REOPEN, PUBLISH),
        (Command.REVIEW, "", REOPEN, PUBLISH),
        (Command.PUBLISH, "", PUBLISH, PUBLISH),
        (Command.PUBLISH, "Anyway", "", ""),
        (Command.QUESTION, "why?", "", ""),
    ],
)
def test_for_a_closed_issue_it_is_said_how_to_get_the_result(
    request_for_run: RunRequest,
    command: Command,
    instruction: str,
    next_step: str,
    next_step_at_end: str,
) -> None:
    trigger = reports.trigger(command=command, instruction=instruction)
    request = replace(request_for_run, trigger=trigger)
    if not next_step:
        require_open_request(request, SETTINGS, forge(CLOSED))
        require_standing_request(request, SETTINGS, forge(CLOSED))
        return
    with pytest.raises(Refused) as refused:
        require_open_request(request, SETTINGS, forge(CLOSED))
    assert (refused.value.what, refused.value.next_step) == ("#12 is closed", next_step)
    assert not refused.value.is_silent
    with pytest.raises(RunStopped, match="#12 was closed while the run was working") as stopped:
        require_standing_request(request, SETTINGS, forge(CLOSED))
    assert stopped.value.next_step == next_step_at_end


AFTER = reports.WHEN + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("kind", "status", "edited"),
    [
        (TriggerKind.ISSUE_COMMENT, STANDS, ""),
        (
            TriggerKind.ISSUE_COMMENT,
            replace(STANDS, comment=RequestText("@agent f, and test", AFTER)),
            "comment",
        ),
        (TriggerKind.ISSUE_COMMENT, replace(STANDS, issue=RequestText("It", AFTER)), ""),
        (
            TriggerKind.ISSUE_OPENED,
            RequestStatus(issue=RequestText("@agent fix it", AFTER)),
            "text",
        ),
        (
            TriggerKind.ISSUE_LABELED,
            RequestStatus(labels=("agent",), issue=RequestText("It", AFTER)),
            "",
        ),
    ],
)
def test_a_request_that_was_edited_is_named_in_the_result(
    request_for_run: RunRequest, kind: TriggerKind, status: RequestStatus, edited: str
) -> None:
    request = replace(request_for_run, trigger=reports.trigger(kind=kind))
    notices = require_standing_request(request, SETTINGS, forge(status))
    assert len(notices) == bool(edited)
    for notice in notices:
        assert notice.startswith(f"The {edited} with the request was edited after it was made.")
