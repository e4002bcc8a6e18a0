"""Logs of the demo that earlier versions wrote, named by their commit, are still read in full."""

from pathlib import Path

import pytest

from resolver.events.base import SCHEMA_VERSION
from resolver.events.lifecycle import RunStarted
from resolver.events.log import EVENT_TYPES, read_log
from resolver.events.state import State
from resolver.models.run import RunState
from resolver.trace.html import render_html
from resolver.trace.markdown import render_markdown

LOGS = sorted((Path(__file__).parent / "earlier_runs").glob("*.jsonl"))


def test_there_is_a_log_of_the_present_schema_version() -> None:
    openings = [next(iter(read_log(log))) for log in LOGS]
    versions = {event.schema_version for event in openings if isinstance(event, RunStarted)}
    assert versions == set(range(1, SCHEMA_VERSION + 1))


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_an_earlier_log_is_read_folded_and_shown(log: Path) -> None:
    events = list(read_log(log))
    assert len(events) == len(log.read_bytes().splitlines())
    assert {type(event) for event in events} <= set(EVENT_TYPES)
    state = State.fold(events)
    assert state.run_state is RunState.FINISHED
    assert "tally" in render_markdown(events)
    assert "<html" in render_html(events)
