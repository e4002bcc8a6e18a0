"""Tests of the log of an Actions job, grouped by the phases of a run."""

import io
from collections.abc import Iterable

import pytest
from rich.console import Console

from resolver.events.actions import CmdRun
from resolver.events.base import Source
from resolver.events.log import Event
from resolver.events.observations import AgentStateChanged, CmdOutput
from resolver.events.stream import utc_now
from resolver.models.run import RunState
from resolver.trace.text import GroupedProgress

OPENED = ["::group::Read the request, clone, start the sandbox"]


def lines_of(events: Iterable[Event], failing: bool = False) -> list[str]:
    out = io.StringIO()
    groups = GroupedProgress(Console(file=out, width=200))
    try:
        with groups.during():
            for event in events:
                groups(event)
            if failing:
                raise OSError
    except OSError:
        pass
    return out.getvalue().splitlines()


def command(text: str, id: int = 1) -> CmdRun:
    return CmdRun(id=id, timestamp=utc_now(), source=Source.AGENT, command=text)


def state(found: RunState) -> AgentStateChanged:
    return AgentStateChanged(id=9, timestamp=utc_now(), source=Source.ENVIRONMENT, state=found)


def test_each_phase_is_a_closed_group() -> None:
    shown = lines_of(
        [state(RunState.RUNNING), command("ls"), command("pwd", 2), state(RunState.FINISHED)]
    )
    assert [line for line in shown if line.startswith("::")] == [
        *OPENED,
        "::endgroup::",
        "::group::The agent works",
        "::endgroup::",
        "::group::Check and publish",
        "::endgroup::",
    ]
    assert shown.index("1. Run ls") > shown.index("::group::The agent works")


@pytest.mark.parametrize("events", [[], [command("ls")]])
def test_a_run_that_fails_closes_its_group(events: list[Event]) -> None:
    assert lines_of(events, failing=True)[-1] == "::endgroup::"


def test_untrusted_text_opens_and_closes_no_group() -> None:
    text = "::endgroup::\n::error::boo\n##[group]x"
    output = CmdOutput(
        id=2, timestamp=utc_now(), source=Source.ENVIRONMENT, cause=1, content=text, exit_code=1
    )
    shown = lines_of([command(f"echo '{text}'"), output])
    assert [line for line in shown if line.lstrip().startswith("::")] == [
        *OPENED,
        "::endgroup::",
        "::group::The agent works",
        "::endgroup::",
    ]
    assert not any("##[" in line for line in shown)
