"""How a run ends if its final comment is written, is not wanted, or can't be written."""

from dataclasses import replace
from pathlib import Path

import pytest

from resolver.errors import Cause, ForgeError
from resolver.github.comments.report import Report, RunFailure
from resolver.github.local_forge import LocalForge
from resolver.runs.conversation.comments import Conclusion, publish_final_comment
from resolver.runs.stages import StageValues
from tests.runs.plain_values import executed_values, published_values, run_request


class RecordingForge(LocalForge):
    """A forge that keeps the reports it is given, or refuses each comment for a reason."""

    def __init__(self, folder: Path, refusal: Cause | None = None) -> None:
        super().__init__(folder / "issue.md", "main")
        self.reports: list[Report] = []
        self._refusal = refusal

    def comment(self, report: Report, retry_seconds: float) -> str | None:
        self.reports.append(report)
        if self._refusal is not None:
            error = ForgeError("the comment was refused", "try again")
            error.cause = self._refusal
            raise error
        return "https://github.com/octo/demo/issues/12#issuecomment-1"


@pytest.fixture
def values(tmp_path: Path) -> StageValues:
    return executed_values(run_request(tmp_path))


def test_the_report_of_the_comment_is_the_one_that_is_returned(
    values: StageValues, tmp_path: Path
) -> None:
    forge = RecordingForge(tmp_path)
    comment = publish_final_comment(values, Conclusion(), forge)
    assert forge.reports == [comment.report]
    assert comment.url is not None and not comment.failed


def test_a_comment_that_can_not_be_written_fails_a_run_that_published_nothing(
    values: StageValues, tmp_path: Path
) -> None:
    comment = publish_final_comment(values, Conclusion(), RecordingForge(tmp_path, "forge_down"))
    assert comment.failed and comment.cause == "forge_down"
    assert comment.conclusion.exit_code != 0
    assert comment.report.failure == comment.conclusion.failure is not None


def test_published_work_remains_without_its_comment(values: StageValues, tmp_path: Path) -> None:
    forge = RecordingForge(tmp_path, "forge_down")
    comment = publish_final_comment(published_values(values), Conclusion(), forge)
    assert comment.failed and comment.conclusion.failure is None
    assert "the comment was refused" in " ".join(comment.warnings)


def test_a_locked_conversation_does_not_change_how_the_run_ended(
    values: StageValues, tmp_path: Path
) -> None:
    comment = publish_final_comment(values, Conclusion(), RecordingForge(tmp_path, "locked"))
    assert not comment.failed and comment.conclusion == Conclusion()
    assert comment.warnings


def test_a_dry_run_and_a_silent_refusal_write_no_comment(
    values: StageValues, tmp_path: Path
) -> None:
    forge = RecordingForge(tmp_path)
    dry = replace(values, request=replace(values.request, publish=False))
    assert publish_final_comment(dry, Conclusion(), forge).url is None
    refused = Conclusion(RunFailure(kind="refused", what="no"), 5, is_silent=True)
    assert publish_final_comment(values, refused, forge).url is None
    assert forge.reports == []
