"""Tests of executing a log again: the actions, their order, and what counts as a difference."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.actions import SandboxAction
from resolver.events.base import EventBase, Source
from resolver.events.lifecycle import DelegateEvent
from resolver.events.log import Event
from resolver.events.observations import Observation
from resolver.runs.execute import rebuild
from resolver.runs.reporting import execution_warnings, outcome_file_of
from resolver.runs.resuming.rebuild import RelocatedExecutor, reexecute
from tests.runs.plain_values import executed_values, prepared_run, run_log, run_request
from tests.trace import sample

WORDS = st.text("abc /.", max_size=8)


class Echo:
    """A sandbox in which actions succeed, except those with the numbers in `changed`."""

    def __init__(self, changed: frozenset[int] = frozenset()) -> None:
        self.done: list[str] = []
        self._changed = changed

    def execute(self, action: SandboxAction) -> Observation:
        name = str(getattr(action, "command", "") or getattr(action, "path", ""))
        exit_code = int(len(self.done) in self._changed)
        self.done.append(name)
        return o.CmdOutput(content=f"saw {name}", exit_code=exit_code)


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Event], list[str]]:
    """A log of commands (some cut off, refused, the run's own, or a delegate's), and what of it
    has to be done again."""
    events: list[Event] = []
    expected: list[str] = []

    def add(event: EventBase) -> int:
        number = len(events)
        stamped = event.model_copy(update={"id": number, "timestamp": datetime.now(UTC)})
        events.append(stamped)  # type: ignore[arg-type]
        return number

    sorts = st.sampled_from(
        ["done", "refused", "not begun", "own", "delegate", "cut off", "external"]
    )
    for number, sort in enumerate(draw(st.lists(sorts, max_size=12))):
        command = f"{number} {draw(WORDS)}"
        saw = o.CmdOutput(content=f"saw {command}", exit_code=0)
        if sort == "delegate":
            nested = (a.CmdRun(command=command, id=0), saw.model_copy(update={"id": 1, "cause": 0}))
            for event in nested:
                add(DelegateEvent(delegate=number, event=event.model_dump(mode="json")))
            expected.append(command)
            continue
        if sort == "external":
            add(o.McpResult(cause=add(a.McpCall(server="x", name="y"))))
            continue
        source = Source.ENVIRONMENT if sort == "own" else Source.AGENT
        id = add(a.CmdRun(command=command, source=source))
        if sort == "refused":
            add(o.ErrorObservation(cause=id, code="refused"))
        elif sort == "not begun":
            add(o.ErrorObservation(cause=id, code="interrupted"))
        elif sort != "cut off":
            add(saw.model_copy(update={"cause": id}))
        if sort == "done":
            expected.append(command)
    return events, expected


@given(logs())
def test_what_was_done_is_done_again_in_order_and_once(log: tuple[list[Event], list[str]]) -> None:
    events, expected = log
    sandbox = Echo()
    done = reexecute(events, sandbox)
    assert sandbox.done == expected
    assert (done.actions, done.differences) == (len(expected), ())
    assert len(done.skipped) == sum(isinstance(e, a.McpCall) for e in events)


@pytest.mark.parametrize(("status", "timeout"), [(0, 400), (1, 400), (130, 3), (137, 3)])
def test_a_command_that_a_person_ended_is_not_awaited_for_longer_than_it_ran(
    status: int, timeout: float
) -> None:
    """Ctrl-C ends most commands; those that ignore it, or begin at that moment, are killed."""
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    action = a.CmdRun(command="sleep 300", timeout=400, id=0, timestamp=begun)
    observation = o.CmdOutput(
        content="", exit_code=status, id=1, cause=0, timestamp=begun + timedelta(seconds=3)
    )
    executed: list[a.CmdRun] = []

    class Sandbox(Echo):
        def execute(self, action: SandboxAction) -> Observation:
            assert isinstance(action, a.CmdRun)
            executed.append(action)
            return super().execute(action)

    reexecute([action, observation], Sandbox())
    assert [done.timeout for done in executed] == [timeout]


def test_the_earlier_path_of_the_repository_means_the_present_one() -> None:
    sandbox = Echo()
    moved = RelocatedExecutor(sandbox, ["/workspace", "/tmp/a/workspace"], "/tmp/b/workspace")
    moved.execute(a.CmdRun(command="cat /workspace/x /tmp/a/home /workspaces /my/workspace"))
    moved.execute(a.FileRead(path="/tmp/a/workspace/x"))
    assert sandbox.done == [
        "cat /tmp/b/workspace/x /tmp/b/home /workspaces /my/workspace", "/tmp/b/workspace/x",
    ]  # fmt: skip


class EchoRuntime(Echo):
    """A sandbox in a folder of its own."""

    root = "/workspace"


def test_each_difference_of_a_rebuilt_sandbox_is_in_the_log_and_the_outcome(
    tmp_path: Path,
) -> None:
    request = run_request(tmp_path)
    commands = [a.CmdRun(command=f"make {word}") for word in ("one", "two", "three")]
    answers = [o.CmdOutput(content=f"saw {c.command}", exit_code=0) for c in commands]
    pairs = [event for pair in zip(commands, answers, strict=True) for event in pair]
    with run_log(request.output.log) as log:
        for event in (sample.started(), *pairs):
            cause = log.state.events[-1].id if isinstance(event, o.CmdOutput) else None
            log.stream.add(event.model_copy(update={"cause": cause}))
        runtime = EchoRuntime(frozenset({1}))
        rebuild(tuple(log.state.events), runtime, log)  # type: ignore[arg-type]
    assert runtime.done == [command.command for command in commands]
    values = replace(executed_values(request), log=log)
    [difference] = outcome_file_of(values, values.publication, None, 0).divergences
    assert (difference.field, difference.recorded, difference.found) == (
        "exit_code",
        "0",
        "1",
    )
    assert values.executed is not None
    prepared = prepared_run(values.request)
    [warning] = execution_warnings(prepared, values.executed, log, is_answer=True)
    assert warning.startswith("This run was resumed in a new sandbox")
    assert "1 result differs" in warning and "(exit_code)" in warning
