"""Tests of which runs `resolver publish` refuses, from the log of a run and nothing else."""

from pathlib import Path

import pytest

from resolver.cli.main import run
from resolver.events.log import dump_line
from resolver.events.observations import AgentStateChanged
from resolver.models.run import RunState
from resolver.storage.earlier_runs import EVENTS
from tests.trace import sample


def published(folder: Path, state: RunState) -> int:
    """Publish a run whose log ends in this state; return the exit code."""
    events = sample.numbered([sample.started(), AgentStateChanged(state=state)])
    (folder / EVENTS).write_text("".join(f"{dump_line(event)}\n" for event in events))
    return run(["publish", str(folder)], {})


@pytest.mark.parametrize("state", [RunState.LIMIT, RunState.ERROR, RunState.AWAITING_CONFIRMATION])
def test_a_run_that_is_not_finished_is_not_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], state: RunState
) -> None:
    assert published(tmp_path, state) == 2
    shown = capsys.readouterr().err
    assert "is not finished" in shown and f"resolver resolve --resume {tmp_path}" in shown


def test_a_finished_run_without_its_change_is_not_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert published(tmp_path, RunState.FINISHED) == 2
    assert "contains no change that can be published" in capsys.readouterr().err
