"""The exit code of a run whose stages all succeeded, from plain values of the stages."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolver.models.run import Patch, Publication, PublicationMethod, RunState
from resolver.runs.pipeline import _exit_code
from resolver.runs.stages import ExecutedRun, OpenedLog, PublishedRun, StageValues
from tests.github import reports
from tests.runs.plain_values import executed_values, prepared_run, run_log, run_request
from tests.trace import sample

UNCHANGED = Patch(base="a" * 40, tree="b" * 40)


@pytest.fixture
def values(tmp_path: Path) -> StageValues:
    values = executed_values(run_request(tmp_path))
    return values.with_value(prepared_run(values.request))


@pytest.mark.parametrize(
    ("state", "changed", "unchanged"),
    [
        (RunState.FINISHED, 0, 3),
        # A change with a reason against it is published, as a draft.
        (RunState.REJECTED, 0, 3),
        (RunState.AWAITING_USER_INPUT, 4, 4),
        (RunState.AWAITING_CONFIRMATION, 4, 4),
        (RunState.LIMIT, 4, 4),
        (RunState.STUCK, 1, 1),
        (RunState.STOPPED, 1, 1),
        (RunState.ERROR, 1, 1),
    ],
)
def test_the_state_of_the_agent_and_its_change_decide(
    values: StageValues, state: RunState, changed: int, unchanged: int
) -> None:
    outcome = reports.outcome(state=state)
    assert _exit_code(values.with_value(ExecutedRun(outcome, reports.patch()))) == changed
    assert _exit_code(values.with_value(ExecutedRun(outcome, UNCHANGED))) == unchanged


@pytest.mark.parametrize("agent", ["ReadOnlyAgent", "ReviewerAgent"])
def test_an_answer_and_a_review_need_no_change(
    values: StageValues, tmp_path: Path, agent: str
) -> None:
    with run_log(tmp_path / "events.jsonl") as log:
        log.stream.add(sample.started().model_copy(update={"agent": agent}))
        values = values.with_value(OpenedLog(log))
        for state, expected in ((RunState.FINISHED, 0), (RunState.LIMIT, 4)):
            executed = ExecutedRun(reports.outcome(state=state), UNCHANGED)
            assert _exit_code(values.with_value(executed)) == expected


@pytest.mark.parametrize(
    ("how", "update", "expected"),
    [
        ("new", "agent", 0),
        ("unchanged", "agent", 3),
        ("patch", "agent", 1),  # a patch alone is a failure
        ("new", "up_to_date", 0),
        ("new", "clean_merge", 0),
    ],
)
def test_the_publication_decides_unless_no_agent_was_needed(
    values: StageValues, how: PublicationMethod, update: Any, expected: int
) -> None:
    assert values.prepared is not None
    values = values.with_value(replace(values.prepared, update=update))
    patch = reports.patch() if update == "agent" else UNCHANGED
    values = values.with_value(ExecutedRun(reports.outcome(), patch))
    assert _exit_code(values.with_value(PublishedRun(Publication(how=how)))) == expected
