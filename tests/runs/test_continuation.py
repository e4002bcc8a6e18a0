"""Tests of continuing from the log of an earlier run, which a stranger may have written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resolver.errors import LogError, Refused
from resolver.events.actions import Message
from resolver.events.log import dump_line
from resolver.events.observations import AgentStateChanged
from resolver.events.state import State
from resolver.models.approval import ApprovalDecision
from resolver.models.run import Command, Continuation, Extension, RunLimits, RunState, Trigger
from resolver.runs.resuming.continuation import (
    continue_from_log,
    remaining_allowance,
)
from resolver.runs.resuming.resume import continue_run
from resolver.storage.earlier_runs import EarlierRun
from tests.runs.plain_values import run_log
from tests.trace import sample

OPENING = sample.started()
SOURCE = OPENING.task.source


def log(*events: Any) -> bytes:
    return b"".join(f"{dump_line(event)}\n".encode() for event in events)


SOUND = log(*sample.numbered([OPENING, sample.reply("Look at it.")]))


def continued(folder: Path, content: bytes, **changes: object) -> object:
    """The continuation that a request on the same issue gets from a log with this content."""
    earlier = EarlierRun("run-0193", folder / "earlier.jsonl", folder / "outcome.json")
    earlier.log.write_bytes(content)
    trigger: Trigger = OPENING.task.trigger.model_copy(update=changes)
    return continue_from_log(trigger, earlier, SOURCE, folder / "events.jsonl")


def test_a_sound_log_of_the_same_issue_is_continued(tmp_path: Path) -> None:
    continued(tmp_path, SOUND)
    log = tmp_path / "events.jsonl"
    assert log.read_bytes() == SOUND
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda log: log.replace(b'"number":482,', b'"number":9,', 1), "is about"),
        (lambda log: log.replace(b"github.com/octo-org/calendar.git", b"evil/c.git"), "another"),
        (lambda log: b"not a log\n", "line 1"),
        (lambda log: b"", "has no event in it"),
        (lambda log: log.partition(b"\n")[0] + b'\n{"kind":"message"}\n' + log[-20:], "line"),
    ],
)
def test_a_planted_log_is_refused(
    tmp_path: Path, change: Callable[[bytes], bytes], says: str
) -> None:
    with pytest.raises(LogError, match=says):
        continued(tmp_path, change(SOUND))
    assert not (tmp_path / "events.jsonl").exists()


@pytest.mark.parametrize(("command", "approved"), [(Command.APPROVE, True), (Command.DENY, False)])
def test_a_decision_continues_the_log_of_a_run_that_waits_for_it(
    tmp_path: Path, command: Command, approved: bool
) -> None:
    waiting = AgentStateChanged(state=RunState.AWAITING_CONFIRMATION)
    content = log(*sample.numbered([OPENING, waiting]))
    found = continued(tmp_path, content, command=command, instruction="123456 leave it alone")
    assert isinstance(found, Continuation) and found.message == ""
    trigger = OPENING.task.trigger
    assert found.decision == ApprovalDecision(
        approved=approved,
        by=trigger.actor.login,
        at=trigger.at,
        reason="leave it alone",
        number="123456",
    )


@pytest.mark.parametrize("command", [Command.APPROVE, Command.DENY, Command.PUBLISH])
def test_where_nothing_waits_and_nothing_is_kept_there_is_nothing_to_decide(
    tmp_path: Path, command: Command
) -> None:
    with pytest.raises(Refused):
        continued(tmp_path, SOUND, command=command)
    assert not (tmp_path / "events.jsonl").exists()


@pytest.mark.parametrize(
    ("replies", "asked", "iterations"),
    [
        (2, Extension(), 2),  # used up: as much as a new run has
        (2, Extension(iterations=5), 5),
        (0, Extension(), 0),  # nothing was used
    ],
)
def test_a_continued_run_gets_what_was_asked_for_or_what_a_new_run_has(
    replies: int, asked: Extension, iterations: int
) -> None:
    limits = RunLimits(max_iterations=2)
    opening = OPENING.model_copy(update={"limits": limits})
    state = State.fold(sample.numbered([opening, *[sample.reply("x")] * replies]))
    assert remaining_allowance(state, limits, asked).iterations == iterations


def test_the_reason_of_a_stop_is_given_to_the_model_when_the_run_continues(tmp_path: Path) -> None:
    continuation = Continuation(run="run-0", by="alice")
    with run_log(tmp_path / "events.jsonl") as log:
        log.stream.add(OPENING)
        reason = "stopped by alice: use the sqlite backend"
        log.stream.add(AgentStateChanged(state=RunState.STOPPED, reason=reason))
        continue_run(log, "run-1", continuation, RunLimits())
        messages = [event.content for event in log.state.events if isinstance(event, Message)]
    assert [reason in message for message in messages] == [True]
