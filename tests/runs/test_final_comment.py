"""How a run ends if its final comment is written, is not wanted, or can't be written."""

from dataclasses import dataclass, replace
from errno import EDQUOT, EIO, ENOSPC
from pathlib import Path

import pytest

from resolver.errors import Cause, ForgeError, UsageError
from resolver.github.comments.report import Report, RunFailure
from resolver.models.run import Publication
from resolver.runs.conversation.comments import (
    Conclusion,
    abandon_run,
    conclude,
    failure_from_os_error,
    publish_final_comment,
)
from resolver.runs.stages import ExecutedRun, OpenedLog, PublishedRun, StageValues
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import (
    PULL,
    executed_values,
    published_values,
    run_log,
    run_request,
)
from tests.trace import sample


@dataclass
class RefusingForge(MemoryForge):
    """A forge that refuses each comment for a reason."""

    refusal: Cause = "forge_down"

    def comment(self, report: Report, seconds: float | None = None) -> str:
        error = ForgeError("the comment was refused", "try again")
        error.cause = self.refusal
        raise error


@pytest.fixture
def values(tmp_path: Path) -> StageValues:
    return executed_values(run_request(tmp_path))


@pytest.mark.parametrize(
    ("is_published", "forge", "exit_code", "has_failed", "warns"),
    [
        (False, MemoryForge(), 0, False, False),
        (False, RefusingForge(), ForgeError.exit_code, True, False),
        # Published work remains, and the job's page is where its link is shown.
        (True, RefusingForge(), ForgeError.exit_code, True, True),
        # A locked conversation does not change how the run ended.
        (False, RefusingForge(refusal="locked"), 0, False, True),
    ],
)
def test_a_comment_that_can_not_be_written_fails_a_run_unless_nobody_accepts_one(
    values: StageValues,
    is_published: bool,
    forge: MemoryForge,
    exit_code: int,
    has_failed: bool,
    warns: bool,
) -> None:
    values = published_values(values) if is_published else values
    comment = publish_final_comment(values, Conclusion(), forge)
    assert (comment.conclusion.exit_code, comment.failed) == (exit_code, has_failed)
    assert (comment.cause == "forge_down") is has_failed
    assert ("the comment was refused" in " ".join(comment.warnings)) is warns
    assert (comment.report.failure is not None) is (has_failed and not is_published)
    assert forge.reports == ([comment.report] if comment.url else [])


def test_a_dry_run_and_a_silent_refusal_write_no_comment(values: StageValues) -> None:
    forge = MemoryForge()
    dry = replace(values, request=replace(values.request, publish=False))
    assert publish_final_comment(dry, Conclusion(), forge).url is None
    refused = Conclusion(RunFailure(kind="refused", what="no"), 5, is_silent=True)
    assert publish_final_comment(values, refused, forge).url is None
    assert forge.reports == []


@pytest.mark.parametrize(
    "full", [".trace.md.new", ".patch.diff.new", ".outcome.json.new", ".pull_request.md.new"]
)
def test_a_disk_that_is_full_at_the_end_fails_the_run_and_prevents_no_other_file(
    values: StageValues, tmp_path: Path, full: str
) -> None:
    log = run_log(tmp_path / "events.jsonl")
    log.stream.add(sample.started())
    described = PULL.model_copy(update={"body": "It works now."})
    publication = Publication(branch="agent/12", commit="d" * 40, pull_request=described)
    patch = reports.patch().model_copy(update={"diff": b"+fixed\n"})
    values = values.with_value(ExecutedRun(reports.outcome(), patch))
    values = values.with_value(OpenedLog(log)).with_value(PublishedRun(publication))
    folder = values.request.output.folder
    (folder / full).symlink_to("/dev/full")
    forge = MemoryForge()
    result = conclude(values, Conclusion(), forge)
    assert result.exit_code == 1
    assert result.failure is not None
    assert "disk of the machine that runs Resolver is full" in result.failure.what
    assert [report.failure for report in forge.reports] == [None], "the comment came before"
    missing = full.removeprefix(".").removesuffix(".new")
    expected = {"patch.diff", "pull_request.md", "trace.md", "outcome.json"} - {missing}
    written = {path.name for path in folder.iterdir() if not path.is_symlink()}
    assert written >= expected and missing not in written


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (OSError(ENOSPC, "No space left", "/x/y"), "Resolver is full"),
        (OSError(EDQUOT, "Quota exceeded"), "Resolver is full"),
        (OSError(EIO, "Input/output error", "/x"), "failed (Input/output error)"),
    ],
)
def test_an_error_of_the_machine_is_reported_as_one(error: OSError, what: str) -> None:
    failure = failure_from_os_error(error)
    assert failure.kind == "error" and failure.what.endswith(what)
    assert ("free some disk space" in failure.next_step) is (error.errno != EIO)


def test_a_person_without_permission_does_not_see_why_a_run_could_not_start(tmp_path: Path) -> None:
    request, forge = run_request(tmp_path), MemoryForge(level="read")
    error = UsageError("the setting `image` is wrong", "correct it")
    abandon_run(request, request.load_settings({}), forge, error)
    assert forge.acknowledged == forge.reports == []
