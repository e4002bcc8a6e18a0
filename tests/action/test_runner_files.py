"""Tests of what the runner is told of a result: outputs and annotation, from plain values."""

from dataclasses import replace
from pathlib import Path

import pytest

from resolver.entrypoints.action import OUTPUT_FOLDER, annotation, open_output, outputs_of
from resolver.errors import UsageError
from resolver.github.comments.report import Report, RunFailure
from resolver.models.run import Publication, RunState
from resolver.runs.conversation.comments import Conclusion, conclude
from resolver.runs.stages import ExecutedRun, PublishedRun, RunResult, StageValues
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import executed_values, published_values, run_request

REFUSED = RunFailure(kind="error", what="the key is wrong.\nIt is 100% so", next_step="set it")


@pytest.fixture
def values(tmp_path: Path) -> StageValues:
    return executed_values(run_request(tmp_path))


def result(values: StageValues, failure: RunFailure | None = None, exit_code: int = 0) -> RunResult:
    forge = MemoryForge(Path("issue.md"), "main")
    return conclude(values, Conclusion(failure, exit_code), forge)


def test_an_annotation_is_one_line_with_the_failure_and_what_to_do(values: StageValues) -> None:
    line = annotation(result(values, REFUSED, 1))
    assert line == "::error title=Resolver::the key is wrong. It is 100%25 so. Set it."


def test_an_annotation_without_a_failure_says_what_there_is(values: StageValues) -> None:
    pull = annotation(result(published_values(values)))
    assert pull.startswith("::notice title=Resolver::Mend it: https://github.com/")
    nothing = annotation(result(values, exit_code=3))
    assert nothing.startswith("::error title=Resolver::Finished without a change.")
    earlier = PublishedRun(Publication(repeated=True, comment_url="https://x/c"))
    repeated = annotation(result(replace(values, published=earlier)))
    assert repeated == (
        "::notice title=Resolver::An earlier run has already handled this request: https://x/c"
    )
    stuck = reports.outcome(state=RunState.LIMIT, reason="it is spent", next_step="raise it")
    values = replace(values, executed=ExecutedRun(stuck, reports.patch()))
    assert annotation(result(values, exit_code=4)).endswith("::it is spent. Raise it.")


def test_the_outputs_name_state_pull_request_and_cost(values: StageValues) -> None:
    outputs = outputs_of(result(published_values(values)))
    assert outputs == {
        "state": "finished",
        "branch": "agent/12",
        "pull-request-number": "7",
        "pull-request-url": "https://github.com/octo/demo/pull/7",
        "cost": "0.4200",
        "iterations": "14",
        "output": OUTPUT_FOLDER,
        "outcome": f"{OUTPUT_FOLDER}/outcome.json",
        "events": "",
    }
    assert outputs_of(result(values, REFUSED, 1))["state"] == "error"


class SilentForge(MemoryForge):
    """A forge on which no final comment can be written."""

    def comment(self, report: Report, seconds: float | None = None) -> str:
        raise UsageError("no comment is accepted")


def test_without_a_final_comment_there_is_no_state(values: StageValues, tmp_path: Path) -> None:
    forge = SilentForge(tmp_path / "issue.md", "main")
    silent = conclude(published_values(values), Conclusion(), forge)
    assert outputs_of(silent)["state"] == "", "so that the job `close` runs"
    assert "::The result of this run could not be posted on GitHub." in annotation(silent)


@pytest.mark.parametrize("link", [OUTPUT_FOLDER, f"{OUTPUT_FOLDER}/outcome.json"])
def test_a_link_in_the_place_of_the_output_is_not_followed(tmp_path: Path, link: str) -> None:
    path = tmp_path / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is a link") as refused:
        open_output(tmp_path)
    assert str(path) in refused.value.what and OUTPUT_FOLDER in refused.value.next_step
    assert not (tmp_path / "elsewhere").exists()
