"""Tests of executing a log again: the actions, their order, and what counts as a difference."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.actions import SandboxAction
from resolver.events.base import Source
from resolver.events.lifecycle import DelegateEvent
from resolver.events.observations import Observation
from resolver.runs.execute import rebuild
from resolver.runs.reporting import execution_warnings, outcome_file_of
from resolver.runs.resuming.rebuild import RelocatedExecutor, reexecute
from tests.runs.plain_values import executed_values, prepared_run, run_log, run_request
from tests.trace import sample


class Echo:
    """A sandbox in which actions succeed, except those with the numbers in `changed`.

    says: what each says; None for its name.
    """

    def __init__(self, says: str | None = None, changed: frozenset[int] = frozenset()) -> None:
        self.done: list[str] = []
        self._says, self._changed = says, changed

    def execute(self, action: SandboxAction) -> Observation:
        name = str(getattr(action, "command", "") or getattr(action, "path", ""))
        exit_code = int(len(self.done) in self._changed)
        self.done.append(name)
        return o.CmdOutput(content=self._says or f"saw {name}", exit_code=exit_code)


def done(number: int) -> o.CmdOutput:
    """The result of the command with that id."""
    return o.CmdOutput(content="saw it", exit_code=0, cause=number)


def test_what_was_done_is_done_again_in_order_and_once() -> None:
    nested = (a.CmdRun(command="of a delegate", id=0), done(0).model_copy(update={"id": 1}))
    events = sample.numbered([
        a.CmdRun(command="of the run itself", source=Source.ENVIRONMENT), done(0),
        a.CmdRun(command="first"), done(2),
        a.CmdRun(command="refused"), o.ErrorObservation(cause=4, code="refused"),
        a.CmdRun(command="not begun"), o.ErrorObservation(cause=6, code="interrupted"),
        a.McpCall(server="x", name="y"), o.McpResult(cause=8),
        *(DelegateEvent(delegate=9, event=event.model_dump(mode="json")) for event in nested),
        a.CmdRun(command="last"), done(12),
        a.CmdRun(command="cut off"),
    ])  # fmt: skip
    sandbox = Echo("saw it")
    again = reexecute(events, sandbox)
    assert sandbox.done == ["first", "of a delegate", "last"]
    assert (again.actions, again.differences, len(again.skipped)) == (3, (), 1)


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
        runtime = EchoRuntime(changed=frozenset({1}))
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
