"""How a run ends if its final comment is written, is not wanted, or can't be written."""

from dataclasses import dataclass, field, replace
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import Settings
from resolver.errors import Cause, ForgeError, LeaseLost, UsageError
from resolver.github.comments.report import Report, RunFailure
from resolver.github.text.markers import Ending
from resolver.models.run import Command, Publication, Task, Trigger, TriggerKind
from resolver.runs.conversation.comments import (
    Conclusion,
    conclude,
    publish_final_comment,
    start_progress_comment,
)
from resolver.runs.output import Output
from resolver.runs.pipeline import run_pipeline
from resolver.runs.stages import ExecutedRun, PublishedRun, StageValues
from resolver.runs.wiring.sandbox import ForgeTokens
from resolver.storage.earlier_runs import OUTCOME
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import (
    PULL,
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
    ended = publish_final_comment(values, Conclusion(), forge)
    assert (ended.exit_code, ended.comment_failed) == (exit_code, has_failed)
    assert (ended.comment_cause == "forge_down") is has_failed
    assert ("the comment was refused" in " ".join(ended.warnings)) is warns
    assert (ended.failure is not None) is (has_failed and not is_published)
    assert len(forge.reports) == (ended.comment_url is not None)


def test_a_dry_run_and_a_silent_refusal_write_no_comment(values: StageValues) -> None:
    forge = MemoryForge()
    dry = replace(values, request=replace(values.request, publish=False))
    assert publish_final_comment(dry, Conclusion(), forge).comment_url is None
    refused = Conclusion(RunFailure(kind="refused", what="no"), 5, is_silent=True)
    assert publish_final_comment(values, refused, forge).comment_url is None
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
    values = replace(values, executed=ExecutedRun(reports.outcome(), patch))
    values = replace(replace(values, log=log), published=PublishedRun(publication))
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


def test_a_person_without_permission_does_not_see_why_a_run_could_not_start(tmp_path: Path) -> None:
    error, forge = UsageError("the setting `image` is wrong"), MemoryForge(level="read")
    run_pipeline(replace(run_request(tmp_path), ended_by=error), forge, lambda _: None)
    [report] = forge.reports
    assert report.ending is Ending.REFUSED and "image" not in str(report.failure)


@dataclass
class FullForge(MemoryForge):
    """A forge during whose reading the disk of this machine becomes full."""

    def read(self, trigger: Trigger) -> Task:
        raise OSError(ENOSPC, f"No space left for {trigger.key}", "/var/clone")


@dataclass
class ForgeWithPushedWork(MemoryForge):
    """A forge on which an earlier attempt has pushed its commit without a final comment.

    requests: which requests for branches and commits it got.
    finished: what a run has published and reported.
    """

    requests: list[str] = field(default_factory=list)
    finished: Publication | None = None

    def find_publication(self, trigger: Trigger) -> Publication | None:
        return self.finished

    def snapshot(self, ref: str, path: str, ref_prefix: str, siblings: Any) -> None:
        self.requests.append(f"refs such as {ref_prefix}")

    def pushed(self, trigger: Trigger, run: str, prefix: str) -> Any:
        self.requests.append(f"commits for {trigger.key}")
        return Publication(how="added", branch="agent/12", commit="d" * 40, pull_request=PULL)

    def read(self, trigger: Trigger) -> Task:
        raise AssertionError(f"the work of {trigger.key} is done again")


def test_a_disk_that_is_full_in_the_middle_is_reported_with_what_to_do(tmp_path: Path) -> None:
    forge = FullForge(tmp_path / "issue.md", "main")
    result = run_pipeline(run_request(tmp_path), forge, lambda _: None)
    assert result.exit_code == 1
    [report] = forge.reports
    assert report.ending is Ending.ERROR and report.failure is not None
    assert report.failure.what.endswith("Resolver is full")
    assert report.failure.next_step == "free some disk space, then ask again"


def test_a_run_whose_commit_was_pushed_is_only_reported(tmp_path: Path) -> None:
    forge = ForgeWithPushedWork(tmp_path / "issue.md", "main")
    result = run_pipeline(run_request(tmp_path), forge, lambda _: None)
    assert result.exit_code == 0
    assert forge.requests == ["commits for issue_comment:77"]
    [report] = forge.reports
    assert report.ending is Ending.PULL_REQUEST and report.pull_request == PULL
    assert report.publication.repeated and report.publication.commit == "d" * 40


@pytest.mark.attack
def test_the_same_delivery_again_does_nothing_twice(tmp_path: Path) -> None:
    """A delivery is repeated: there is one branch, one pull request and one comment."""
    page = "https://github.com/octo/demo/issues/12#issuecomment-1"
    finished = Publication(branch="agent/12", pull_request=PULL, comment_url=page)
    forge = ForgeWithPushedWork(tmp_path / "issue.md", "main", finished=finished)
    result = run_pipeline(run_request(tmp_path), forge, lambda _: None)
    assert (result.exit_code, result.outcome_file.repeated) == (0, True)
    assert result.outcome_file.pull_request == PULL
    assert forge.requests == forge.reports == forge.acknowledged == []


def test_a_refused_run_loads_nothing(tmp_path: Path) -> None:
    loaded: list[Settings] = []
    request = replace(run_request(tmp_path, LLM_MODEL="gpt-4o"), publish=False)
    result = run_pipeline(request, MemoryForge(tmp_path / "issue.md", level="read"), loaded.append)
    assert result.exit_code == 5
    assert loaded == []


@pytest.mark.parametrize("has_lease", [True, False])
def test_a_run_without_a_lease_ends_without_a_comment_and_without_an_outcome(
    tmp_path: Path, has_lease: bool
) -> None:
    def require_lease() -> None:
        if not has_lease:
            raise LeaseLost("the lease of executor 1 has ended")

    request = run_request(tmp_path, LLM_MODEL="gpt-4o")
    tokens = ForgeTokens(require_lease=require_lease)
    request = replace(request, host=replace(request.host, tokens=tokens))
    forge = MemoryForge(tmp_path / "issue.md")
    if has_lease:
        # there is no such issue, so the run fails
        assert run_pipeline(request, forge, lambda _: None).exit_code != 0
    else:
        with pytest.raises(LeaseLost):
            run_pipeline(request, forge, lambda _: None)
        assert forge.reports == []
    assert (tmp_path / "output" / OUTCOME).exists() == has_lease
    Output(tmp_path / "output", resume=True).close()  # the folder is not locked any more


ANSWERED = "https://github.com/octo/demo/issues/12#issuecomment-1"
IN_THREAD = reports.trigger(kind=TriggerKind.REVIEW_COMMENT, command=Command.QUESTION)


@pytest.mark.parametrize(
    ("forge", "changes", "url", "has_comment"),
    [
        (MemoryForge(), {}, None, True),
        (MemoryForge(), {"publish": False}, None, False),
        (MemoryForge(), {}, ANSWERED, False),
        (MemoryForge(), {"trigger": IN_THREAD}, None, False),
        (None, {}, None, False),
    ],
)
def test_a_run_has_a_progress_comment_where_nothing_else_has_the_answer(
    tmp_path: Path,
    forge: MemoryForge | None,
    changes: dict[str, Any],
    url: str | None,
    has_comment: bool,
) -> None:
    request = replace(run_request(tmp_path), **changes)
    reporter = start_progress_comment(request, Settings(), Publication(comment_url=url), forge)
    if reporter is not None:
        reporter.close()
    assert (reporter is not None) is has_comment
