"""What `resolver replay` says about a difference, and where a fork cuts its log."""

import pytest

from resolver.cli.replay import ReplayLog, _render_result, fork_boundary
from resolver.errors import UsageError
from resolver.events.actions import CmdRun
from resolver.events.lifecycle import ModelReplied, ReplayDiverged
from resolver.events.log import Event
from resolver.events.observations import CmdOutput
from resolver.models.run import Completion
from resolver.runs.resuming.rebuild import RecordedAction, Reexecution
from tests.trace import sample

OPENING = sample.started()
LOG = ReplayLog([OPENING], OPENING, "/calc")
PWD = RecordedAction(4, CmdRun(command="pwd; date"), CmdOutput(content="x", exit_code=0))
OTHER = ReplayDiverged(recorded_id=5, field="content", recorded="a * b", found="a - b")


def test_a_replay_without_a_difference_says_what_was_executed() -> None:
    text = _render_result(LOG, Reexecution(3, (), ((7, "mcp_call"),)))
    assert text.startswith(f"Same as the recording: 3 actions of run {OPENING.run}, executed again")
    assert "Skipped: event 7 (mcp_call)" in text


def test_the_first_difference_is_shown_with_its_action_and_both_results() -> None:
    later = (RecordedAction(8, CmdRun(command="ls"), PWD.observation), OTHER)
    text = _render_result(LOG, Reexecution(3, ((PWD, OTHER), later), ()))
    assert "2 of 3 actions" in text
    assert "event 4, Run pwd; date\n" in text and "Run ls" not in text
    assert "content of its result (event 5)" in text
    assert "Recorded  a * b\n" in text and "Found     a - b" in text


def replied(id: int) -> ModelReplied:
    return ModelReplied(id=id, completion=Completion(model="m"))


EVENTS: list[Event] = [
    OPENING, replied(1), CmdRun(id=2, command="a"), CmdOutput(id=3, content="", exit_code=0),
    replied(4), CmdRun(id=5, command="b"), CmdOutput(id=6, content="", exit_code=0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("event", "kept"), [(0, 1), (1, 1), (2, 1), (3, 4), (4, 4), (5, 4), (6, 7)]
)
def test_a_fork_keeps_the_steps_that_had_ended_and_from_the_end_all(event: int, kept: int) -> None:
    assert fork_boundary(EVENTS, event) == kept


def test_a_log_is_not_cut_after_its_end() -> None:
    with pytest.raises(UsageError, match="the log ends with event 6"):
        fork_boundary(EVENTS, 7)
