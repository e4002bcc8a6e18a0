"""Tests of continuing from the log of an earlier run, which a stranger may have written."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.controller.control import Approve, Control, Deny, Request
from resolver.errors import LogError
from resolver.events.actions import Message
from resolver.events.base import Source
from resolver.events.lifecycle import (
    ConfirmationAnswered,
    ModelReplied,
    Resumed,
    ServiceReplied,
    SystemPrompt,
)
from resolver.events.log import Event, dump_line
from resolver.events.observations import AgentStateChanged
from resolver.events.run_log import RunLog
from resolver.events.state import State
from resolver.models.run import (
    Command,
    Completion,
    Continuation,
    Extension,
    RunLimits,
    RunState,
    Trigger,
)
from resolver.runs.conversation.commands import apply_approvals
from resolver.runs.execute import _restore_start
from resolver.runs.output import Output
from resolver.runs.resuming.continuation import (
    continue_from_log,
    remaining_allowance,
)
from resolver.runs.resuming.resume import (
    change_limits,
    continue_run,
)
from resolver.storage.earlier_runs import EarlierRun
from tests.github import reports
from tests.runs.plain_values import run_log
from tests.trace import sample

OPENING = sample.started()
SOURCE = OPENING.task.source


def lines_of(*events: Any) -> bytes:
    return b"".join(f"{dump_line(event)}\n".encode() for event in events)


SOUND = lines_of(*sample.numbered([OPENING, sample.reply("Look at it.")]))


def continued(folder: Path, content: bytes, **changes: object) -> object:
    """The continuation that a request on the same issue gets from a log with this content."""
    earlier = EarlierRun("run-0193", folder / "earlier.jsonl", folder / "outcome.json")
    earlier.log.write_bytes(content)
    trigger: Trigger = OPENING.task.trigger.model_copy(update=changes)
    return continue_from_log(trigger, earlier, SOURCE, Output(folder / "output"))


def test_a_sound_log_of_the_same_issue_is_continued(tmp_path: Path) -> None:
    continued(tmp_path, SOUND)
    log = tmp_path / "output" / "events.jsonl"
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
    assert not (tmp_path / "output" / "events.jsonl").exists()


def test_a_decision_continues_the_log_of_a_run_that_waits_for_it_without_a_message(
    tmp_path: Path,
) -> None:
    waiting = AgentStateChanged(state=RunState.AWAITING_CONFIRMATION)
    content = lines_of(*sample.numbered([OPENING, waiting]))
    found = continued(tmp_path, content, command=Command.DENY, instruction="123456 leave it alone")
    assert isinstance(found, Continuation) and found.message == ""


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


RUN = "run-2"
MAX = RunLimits(max_iterations=1000)


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


@pytest.mark.parametrize("state", [RunState.ERROR, RunState.FINISHED])
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


BY_MONA = Continuation(run="run-1", by="mona")
APPROVE = reports.trigger(command=Command.APPROVE, instruction="123456")
CONTINUE = reports.trigger(command=Command.CONTINUE)
MESSAGE = BY_MONA.model_copy(update={"message": " use tabs "})


@pytest.mark.parametrize(
    ("trigger", "continuation", "expected"),
    [
        (APPROVE, BY_MONA, [Approve(by="alice", at=APPROVE.at, number="123456")]),
        (CONTINUE, MESSAGE, [Deny(by="mona", reason="use tabs")]),
        (CONTINUE, BY_MONA, []),
        (CONTINUE, None, []),
    ],
)
def test_a_later_decision_is_given_to_the_run_that_waits_for_it(
    log: RunLog, trigger: Trigger, continuation: Continuation | None, expected: list[Request]
) -> None:
    control, waiting = Control(), ended_in(log, RunState.AWAITING_CONFIRMATION)
    apply_approvals(waiting, RUN, trigger, continuation, control)
    assert list(iter(control.take, None)) == expected


def test_a_decision_is_given_once_and_only_to_a_run_that_waits(log: RunLog) -> None:
    """A process that was killed after the answer was logged is followed by another one."""
    control = Control()
    apply_approvals(log, RUN, APPROVE, BY_MONA, control)
    ended_in(log, RunState.AWAITING_CONFIRMATION)
    log.stream.add(ConfirmationAnswered(action=1, approved=True, by="mona"))
    apply_approvals(log, RUN, APPROVE, BY_MONA, control)
    assert control.is_empty


STARTED = sample.started().model_copy(update={"id": 0, "agent": "counter"})


def replied(id: int, text: str) -> ModelReplied:
    return ModelReplied(id=id, completion=Completion(model="m", text=text))


RECORDING: tuple[Event, ...] = (
    STARTED,
    replied(1, "first"),
    ServiceReplied(id=2, service="condenser", completion=Completion(model="m")),
    replied(3, "second"),
)


def restored(*events: Event) -> tuple[Any, list[str]]:
    """Return the settings that the log continues with, and the kinds of what is left to replay."""
    environment = {"RESOLVER_MODEL_OPTIONS": "{dialect: tools}"}
    settings = load_settings({"agent": "CodeActAgent"}, environment)
    prepared = SimpleNamespace(settings=settings)
    log = SimpleNamespace(opening=STARTED, state=State.fold(events))
    request: Any = SimpleNamespace(prepared=prepared, recording=RECORDING, log=log)
    found, remaining = _restore_start(request)
    return found, [f"{event.id} {event.kind}" for event in remaining]


def test_a_resumed_log_keeps_agent_and_dialect_and_skips_the_replies_that_it_has() -> None:
    prompt = SystemPrompt(id=1, content="", dialect="tags")
    settings, remaining = restored(STARTED, prompt, replied(2, "first"))
    assert (settings.agent, settings.model_options.dialect) == ("counter", "tags")
    assert remaining == ["0 run_started", "2 service_replied", "3 model_replied"]
