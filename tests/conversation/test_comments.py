"""Tests of whether a run gets a progress comment, and of its end without a final one."""

from dataclasses import replace
from pathlib import Path

from resolver.config.settings import Settings, load_settings
from resolver.errors import ForgeError
from resolver.github.comments.report import Report
from resolver.models.run import Command, Publication, TriggerKind
from resolver.runs.conversation.comments import (
    Conclusion,
    conclude,
    start_progress_comment,
)
from resolver.runs.stages import RunRequest
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import executed_values, run_request


def has_progress_comment(
    request: RunRequest, url: str | None = None, *, is_local: bool = False
) -> bool:
    forge = None if is_local else MemoryForge()
    published = Publication(comment_url=url)
    reporter = start_progress_comment(request, Settings(), published, forge)
    if reporter is not None:
        reporter.close()
    return reporter is not None


def test_a_run_has_one_unless_it_publishes_nothing_or_has_ended(tmp_path: Path) -> None:
    request = run_request(tmp_path)
    assert has_progress_comment(request)
    assert not has_progress_comment(replace(request, publish=False))
    final_comment = "https://github.com/octo/demo/issues/12#issuecomment-1"
    assert not has_progress_comment(request, url=final_comment)


def test_there_is_none_where_no_issue_or_another_conversation_has_the_answer(
    tmp_path: Path,
) -> None:
    request = run_request(tmp_path)
    assert not has_progress_comment(request, is_local=True)
    trigger = reports.trigger(kind=TriggerKind.REVIEW_COMMENT, command=Command.QUESTION)
    assert not has_progress_comment(replace(request, trigger=trigger))


class LockedForge(MemoryForge):
    """A forge whose issue is locked."""

    def comment(self, report: Report, seconds: float | None = None) -> str:
        error = ForgeError("the issue is locked", "unlock it")
        error.cause = "locked"
        raise error


def test_a_result_that_can_not_be_posted_is_a_warning_of_the_report(tmp_path: Path) -> None:
    values = executed_values(run_request(tmp_path))
    result = conclude(values, Conclusion(), LockedForge(tmp_path / "issue.md", "main"))
    words = "The result could not be posted on GitHub: the issue is locked"
    assert result.exit_code == 0 and words in result.report.warnings


class PatientForge(MemoryForge):
    """A forge that keeps for how long the final comment is to be retried."""

    seconds: float | None = None

    def comment(self, report: Report, seconds: float | None = None) -> str:
        self.seconds = seconds
        return ""


def test_the_final_comment_is_retried_for_the_time_of_the_setting(tmp_path: Path) -> None:
    values, forge = executed_values(run_request(tmp_path)), PatientForge(tmp_path, "main")
    settings = load_settings({}, {"RESOLVER_PACE": '{"final_comment": 7}'})
    conclude(replace(values, settings=settings), Conclusion(), forge)
    assert forge.seconds == 7
