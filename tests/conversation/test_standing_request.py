"""Tests of when GitHub is asked whether a request still stands, and what follows from an error."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.errors import ForgeError, Refused, RunStopped
from resolver.models.request_status import RequestStatus, RequestText
from resolver.models.run import Command, Trigger, TriggerKind
from resolver.runs.conversation.watch import (
    require_open_request,
    require_standing_request,
)
from resolver.runs.stages import RunRequest
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import run_request

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


def test_a_request_that_was_taken_back_before_its_run_starts_is_refused_silently(
    request_for_run: RunRequest,
) -> None:
    require_open_request(request_for_run, SETTINGS, forge(STANDS))
    for status in (DELETED, replace(STANDS, comment=RequestText("never mind"))):
        with pytest.raises(Refused, match="before the run started") as refused:
            require_open_request(request_for_run, SETTINGS, forge(status))
        assert refused.value.is_silent
    without_issue = replace(request_for_run, trigger=reports.trigger(number=None))
    require_open_request(without_issue, SETTINGS, forge())


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


BEFORE, AFTER = reports.WHEN - timedelta(minutes=1), reports.WHEN + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("kind", "status", "edited"),
    [
        (TriggerKind.ISSUE_COMMENT, STANDS, ""),
        (TriggerKind.ISSUE_COMMENT, replace(STANDS, comment=RequestText("@agent f", BEFORE)), ""),
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
