"""What a request to continue adds to the log of the earlier run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resolver.controller.control import Approve, Control, Deny, MessageToAgent, Request
from resolver.events.actions import Message
from resolver.events.base import Source
from resolver.events.lifecycle import ConfirmationAnswered, Resumed
from resolver.events.log import Event
from resolver.events.observations import AgentStateChanged
from resolver.events.run_log import RunLog
from resolver.models.approval import ApprovalDecision
from resolver.models.run import Continuation, Extension, RunLimits, RunState
from resolver.runs.resuming.resume import (
    apply_approvals,
    change_limits,
    continue_run,
    resume_run,
)
from tests.trace import sample

RUN = "run-2"
MAX = RunLimits(max_iterations=1000)


def unchanged(event: Event) -> Event:
    return event


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    """A log that `RUN` has just resumed."""
    with RunLog(tmp_path / "events.jsonl", unchanged, lambda: sample.START) as opened:
        opened.stream.add(sample.started())
        yield opened


CONTINUATION = Continuation(run="run-1", by="mona")


@pytest.mark.parametrize(
    ("state", "ended", "continuation", "reason"),
    [
        (RunState.FINISHED, True, None, "the run had ended, and its change is to be published"),
        (RunState.LIMIT, True, None, "the run had ended, and continues"),
        (RunState.RUNNING, False, None, "the run was interrupted and continues"),
        (RunState.FINISHED, False, None, "the run was interrupted and continues"),
        (RunState.LIMIT, False, CONTINUATION, "continues run run-1"),
        (RunState.LIMIT, True, CONTINUATION, "the run had ended, and continues"),
    ],
)
def test_the_log_says_why_and_for_whom_a_run_is_resumed(
    log: RunLog, state: RunState, ended: bool, continuation: Continuation | None, reason: str
) -> None:
    log.stream.add(AgentStateChanged(state=state))
    resume_run(log, RUN, continuation, ended=ended)
    resumed = log.state.events[-1]
    assert isinstance(resumed, Resumed)
    assert resumed.run == RUN
    assert (resumed.reason, resumed.by) == (reason, "mona" if continuation else None)


def test_limits_that_a_person_gave_replace_those_of_the_log_once(log: RunLog) -> None:
    count = len(log.state.events)
    unchanged_limits = log.state.limits
    change_limits(log, {"max_iterations": unchanged_limits.max_iterations})
    assert len(log.state.events) == count
    for _ in range(2):
        change_limits(log, {"max_iterations": 7})
    assert len(log.state.events) == count + 1
    assert log.state.limits == unchanged_limits.model_copy(update={"max_iterations": 7})


def ended_in(log: RunLog, state: RunState) -> RunLog:
    log.stream.add(AgentStateChanged(state=state))
    log.stream.add(Resumed(version="1", run=RUN))
    return log


def messages(log: RunLog) -> list[str]:
    events = log.state.events
    return [e.content for e in events if isinstance(e, Message) and e.source is Source.USER]


@pytest.mark.parametrize(
    "state", [RunState.REJECTED, RunState.ERROR, RunState.LIMIT, RunState.FINISHED]
)
def test_an_ended_run_gets_the_persons_text_once_and_runs_again(
    log: RunLog, state: RunState
) -> None:
    ended_in(log, state)
    continuation = Continuation(run="run-1", message="The one in calc.py", by="mona")
    continue_run(log, RUN, continuation, MAX)
    [message] = messages(log)
    assert "mona asked for it" in message and "\nThe one in calc.py\n" in message
    assert log.state.run_state is RunState.RUNNING
    # A process that was killed here is followed by another one.
    continue_run(log, RUN, continuation, MAX)
    assert messages(log) == [message]


def test_the_extension_raises_the_limits_of_the_log_once(log: RunLog) -> None:
    ended_in(log, RunState.LIMIT)
    before = log.state.limits.max_iterations
    continuation = Continuation(run="run-1", extension=Extension(iterations=5), by="mona")
    for _ in range(2):
        continue_run(log, RUN, continuation, MAX)
    assert log.state.limits.max_iterations == before + 5


@pytest.mark.parametrize(
    ("state", "then"),
    [(RunState.ERROR, RunState.RUNNING), (RunState.FINISHED, RunState.FINISHED)],
)
def test_a_run_resumed_by_nobody_runs_again_unless_it_was_done(
    log: RunLog, state: RunState, then: RunState
) -> None:
    continue_run(ended_in(log, state), RUN, None, MAX)
    assert (log.state.run_state, messages(log)) == (then, [])


def decided(approved: bool, reason: str = "") -> Continuation:
    decision = ApprovalDecision(
        approved=approved, by="mona", at=sample.START, reason=reason, number="123456"
    )
    return Continuation(run="run-1", by="mona", decision=decision)


APPROVAL = Approve(by="mona", at=sample.START, number="123456")


@pytest.mark.parametrize(
    ("continuation", "expected"),
    [
        (decided(True), [APPROVAL]),
        (decided(True, "thanks"), [APPROVAL, MessageToAgent("thanks", "mona")]),
        (
            decided(False, "leave it"),
            [Deny(by="mona", at=sample.START, reason="leave it", number="123456")],
        ),
        (
            Continuation(run="run-1", by="mona", message=" use tabs "),
            [Deny(by="mona", reason="use tabs")],
        ),
        (Continuation(run="run-1", by="mona"), []),
        (None, []),
    ],
)
def test_a_later_decision_is_given_to_the_run_that_waits_for_it(
    log: RunLog, continuation: Continuation | None, expected: list[Request]
) -> None:
    control = Control()
    apply_approvals(ended_in(log, RunState.AWAITING_CONFIRMATION), RUN, continuation, control)
    assert list(iter(control.take, None)) == expected


def test_a_decision_is_given_once_and_only_to_a_run_that_waits(log: RunLog) -> None:
    """A process that was killed after the answer was logged is followed by another one."""
    control = Control()
    apply_approvals(log, RUN, decided(True), control)
    ended_in(log, RunState.AWAITING_CONFIRMATION)
    log.stream.add(ConfirmationAnswered(action=1, approved=True, by="mona"))
    apply_approvals(log, RUN, decided(True), control)
    assert control.is_empty
