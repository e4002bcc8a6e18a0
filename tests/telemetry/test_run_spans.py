"""Tests of the spans of a whole run: its root, its phases, and its trace's id."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from resolver.errors import RunStopped
from resolver.events.lifecycle import Resumed
from resolver.models.run import Publication, RunState
from resolver.runs.stages import ExecutedRun, RunTask, StageValues
from resolver.runs.wiring.telemetry import end_spans
from resolver.telemetry.run_spans import PHASES, RunSpans
from resolver.telemetry.span import Attributes
from tests.github import reports
from tests.runs.plain_values import PULL, executed_values, published_values, run_request
from tests.telemetry.spans import BEGIN, MemorySpan, Timed
from tests.telemetry.test_agent_spans import opening
from tests.webhook.test_metrics import result_of


class MemoryExport:
    """Keeps the root span."""

    def __init__(self) -> None:
        self.is_closed = False

    def start(self, name: str, at: object, attributes: Attributes) -> MemorySpan:
        self.root = MemorySpan(name, BEGIN, dict(attributes))
        return self.root

    def close(self) -> None:
        self.is_closed = True


def opened() -> tuple[RunSpans, MemorySpan, MemoryExport, Timed]:
    export, timed = MemoryExport(), Timed()
    spans = RunSpans(export, {"resolver.run.id": "run-1"}, None, timed.now)
    return spans, export.root, export, timed


def test_each_phase_begins_where_the_one_before_it_ends() -> None:
    spans, root, export, timed = opened()
    for at, value in enumerate(("accepted", "announced", "run_task", "cloned"), start=1):
        timed.at = at
        spans.reach(value)
    timed.at = 9.0
    spans.end({"resolver.state": "error"}, "error")
    assert [(span.name, *span.seconds, span.error) for span in root.children] == [
        ("authorize", 0.0, 1.0, ""),
        ("start_comment", 1.0, 2.0, ""),
        ("read_task", 2.0, 3.0, ""),
        ("clone", 3.0, 4.0, ""),
        ("prepare", 4.0, 9.0, "error"),
    ]
    assert root.name == "invoke_workflow resolver" and root.seconds == (0.0, 9.0)
    assert root.error == "error" and export.is_closed
    assert root.attributes == {"resolver.run.id": "run-1", "resolver.state": "error"}


def test_a_phase_has_the_name_of_what_it_led_to() -> None:
    """Verification was expected, and the result was published without it."""
    spans, root, _, _ = opened()
    for value in ("opened", "executed", "published", "published", "replied"):
        spans.reach(value)
    assert [span.name for span in root.children] == ["open_log", "execute", "publish", "conclude"]


def test_the_work_of_the_agent_is_below_the_phase() -> None:
    spans, root, _, timed = opened()
    spans.reach("opened")
    timed.stream.subscribe("telemetry", spans.subscriber([]), essential=True)
    timed.add(1.0, opening())
    assert root.links == []
    spans.end({})
    assert all(span.ended for _, span in root.walk())


class InterruptedExport(MemoryExport):
    """A signal arrives while the last spans are sent."""

    def close(self) -> None:
        raise RunStopped("stopped by SIGTERM")


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.STUCK])
def test_a_signal_while_spans_are_sent_changes_no_result(tmp_path: Path, state: RunState) -> None:
    export = InterruptedExport()
    result = result_of(tmp_path, Publication(pull_request=PULL))
    file = result.outcome_file.model_copy(update={"state": state, "traceparent": "x"})
    spans = RunSpans(export, {}, None, Timed().now)
    result = replace(
        result, outcome_file=file, request=replace(result.request, spans=spans), failure=None
    )
    assert end_spans(result) is result
    assert export.root.error == ("stuck" if state is RunState.STUCK else "")
    assert export.root.attributes["resolver.state"] == state.value
    assert export.root.attributes["vcs.change.id"] == "7"


def test_a_resumed_run_links_the_newest_earlier_trace() -> None:
    spans, root, _, _ = opened()
    first = opening().model_copy(update={"traceparent": f"00-{'1' * 32}-{'2' * 16}-01"})
    newest = f"00-{'3' * 32}-{'4' * 16}-01"
    spans.subscriber([first, Resumed(version="1", run="run-2", traceparent=newest)])
    assert root.links == [newest]


def test_the_values_of_the_stages_are_those_that_phases_end_with(tmp_path: Path) -> None:
    assert set(PHASES) <= {field.name for field in fields(StageValues)}
    request = run_request(tmp_path)
    executed = executed_values(request)
    begun = StageValues(request, executed.settings)
    assert executed.reached_since(begun) == ("executed",)
    assert published_values(executed).reached_since(executed) == ("published",)
    assert executed.reached_since(executed) == ()
    task = RunTask(request, reports.task(reports.trigger()))
    assert begun.with_value(task).reached_since(begun) == ("run_task",)
    assert isinstance(executed.executed, ExecutedRun)
