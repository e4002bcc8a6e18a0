"""Writes a run's comments in its conversation: progress, request for approval, final comment.

The progress comment is only written for a run that may start and that publishes its work. Nothing
in the report stage raises: an error in it is part of how the run ended.
"""

import errno
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.controller.confirmation import ApprovalNotifier
from resolver.errors import Cause, LeaseLost, ResolverError, RunStopped
from resolver.github.comments.progress import ProgressReporter, RunProgress
from resolver.github.comments.report import RunFailure, failure_from_error
from resolver.github.github_forge import GitHubForge
from resolver.models.approval import PendingApproval
from resolver.models.run import Publication, TriggerKind
from resolver.runs.quotas.admission import record_cost
from resolver.runs.reporting import (
    build_report,
    can_be_published,
    outage_of,
    outcome_file_of,
)
from resolver.runs.stages import RunRequest, RunResult, StageValues


def start_progress_comment(
    request: RunRequest, settings: Settings, publication: Publication, forge: GitHubForge | None
) -> ProgressReporter | None:
    """React to the request and start the progress comment. Returns at once; never raises.

    publication: what an earlier attempt of this run has published. Returns None if the run gets no
    progress comment.
    """
    if forge is None or not request.publish:
        return None
    forge.acknowledge(request.trigger)
    # A question in a review thread is answered in that thread and nowhere else.
    if publication.comment_url is not None or request.trigger.in_thread:
        return None
    now = request.now()
    reporter = ProgressReporter(
        forge.progress_writer,
        RunProgress(
            trigger=request.trigger,
            run=request.run,
            since=now,
            until=now + settings.longest_run,
            mention=settings.mention,
            job=request.actions_run,
            log_url=request.log_url or request.page,
            verifies=settings.verify,
        ),
        settings.pace.progress_interval,
        request.redactor(settings).redact_text,
    )
    reporter.start()
    return reporter


logger = logging.getLogger("resolver.runs.conversation.comments")


def approval_notifier(values: StageValues, forge: GitHubForge | None) -> ApprovalNotifier | None:
    """Return what shows an action to the person who may approve it; None if nobody can answer."""
    if forge is None or not values.request.publish:
        return None

    def ask(pending_approval: PendingApproval) -> datetime | None:
        if values.progress is not None:
            values.progress.hold()
        try:
            return forge.ask(
                build_report(values, pending_approval=pending_approval, include_trace=True)
            )
        except ResolverError as error:
            logger.warning("nobody could be asked to approve an action: %s", error.what)
            return None

    return ask


COMMENT_NOT_ACCEPTED = frozenset({"locked", "issues_off"})
"""Causes for which the conversation accepts no comment. The exit code stays as it was, and the
outcome and the job's summary say how the run ended."""

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True)
class Conclusion:
    """The end of a run: before anybody is notified, and then with the final comment.

    is_silent: True if the refusal is not written to the conversation, because it was written there
        today already.
    comment_url: of the final comment; None if there is none.
    comment_failed: True if the comment should have been written and could not be.
    comment_cause: why it could not be.
    """

    failure: RunFailure | None = None
    exit_code: int = 0
    is_silent: bool = False
    comment_url: str | None = None
    comment_failed: bool = False
    comment_cause: Cause | None = None
    warnings: tuple[str, ...] = ()

    def with_failure(self, failure: RunFailure, exit_code: int) -> "Conclusion":
        """Return the conclusion with one more failure. The first failure is the one that is
        reported."""
        return replace(self, failure=self.failure or failure, exit_code=self.exit_code or exit_code)


def conclude(values: StageValues, conclusion: Conclusion, forge: GitHubForge | None) -> RunResult:
    """Write the final comment, the cost in the quota ledger and the output folder, and return the
    result.

    An error here is part of how the run ended. Raises nothing but LeaseLost: then another process
    continues the run, and this one neither comments nor records anything.
    """
    _require_lease(values)
    conclusion = publish_final_comment(values, conclusion, forge)
    _require_lease(values)
    report = build_report(values, conclusion.failure, include_trace=True)
    report = report.model_copy(update={"warnings": (*report.warnings, *conclusion.warnings)})
    publication = values.publication
    if conclusion.comment_url is not None:
        publication = publication.model_copy(update={"comment_url": conclusion.comment_url or None})
    conclusion = _write_artifacts(values, publication, conclusion)
    outcome_file = outcome_file_of(values, publication, conclusion.failure, conclusion.exit_code)
    try:
        values.request.output.write_outcome(outcome_file)
    except OSError as error:
        conclusion = conclusion.with_failure(_report_unwritten(values, error), 1)
    recorded = record_cost(values, report)  # with the log, which needs the outcome's file
    values.request.output.close()
    return RunResult(
        request=values.current_request,
        report=report,
        outcome_file=outcome_file,
        publication=publication,
        exit_code=conclusion.exit_code,
        outcome=values.outcome,
        failure=conclusion.failure,
        log=values.log,
        comment_failed=conclusion.comment_failed,
        outage=outage_of(values, conclusion.failure, conclusion.comment_cause),
        archived=recorded.is_log_archived,
        quota_use=recorded.quota_use,
    )


def _require_lease(values: StageValues) -> None:
    """Raise LeaseLost, after closing the run's files, if this process may not write any more."""
    try:
        values.request.host.require_lease()
    except LeaseLost:
        if values.progress is not None:
            values.progress.close()
        if values.log is not None:
            values.log.close()
        values.request.output.close()
        raise


def publish_final_comment(
    values: StageValues, conclusion: Conclusion, forge: GitHubForge | None
) -> Conclusion:
    """Write the comment that says how the run ended. If it can't be written, that is a failure of
    the run."""
    try:
        try:
            return _write_final_comment(values, conclusion, forge)
        except RunStopped as stopped:
            # `stop_on_signals` raises once, so that the process has time left for this comment.
            failure = values.redact(failure_from_error(stopped))
            conclusion = conclusion.with_failure(failure, stopped.exit_code)
            return _write_final_comment(values, conclusion, forge)
    except (ResolverError, RunStopped) as error:
        logger.error("the result of run %s could not be posted: %s", values.request.run, error.what)
        return _without_comment(values, conclusion, error)


def _without_comment(
    values: StageValues, conclusion: Conclusion, error: ResolverError | RunStopped
) -> Conclusion:
    """Return the end of a run whose final comment could not be written because of the error."""
    failure = values.redact(failure_from_error(error))
    has_failed = failure.cause not in COMMENT_NOT_ACCEPTED
    if has_failed:
        conclusion = replace(conclusion, comment_failed=True, comment_cause=failure.cause)
    publication = values.publication
    if has_failed and publication.pull_request is None and publication.review is None:
        return conclusion.with_failure(failure, error.exit_code)
    if has_failed:
        # The published work remains, and the job's page is where its link is shown.
        conclusion = replace(conclusion, exit_code=conclusion.exit_code or error.exit_code)
    warning = render("run/comment_not_posted.md.j2", what=error.what).strip()
    return replace(conclusion, warnings=(warning,))


def _write_final_comment(
    values: StageValues, conclusion: Conclusion, forge: GitHubForge | None
) -> Conclusion:
    """Write the final comment, and return the conclusion with its URL if one is to be written."""
    progress, request = values.progress, values.current_request
    if progress is not None:
        progress.close()
    is_written = values.publication.comment_url is not None
    if forge is None or not request.publish or is_written:
        return conclusion
    if conclusion.is_silent and not forge.has_active_run(request.trigger):
        return conclusion
    has_no_comment = progress is None or progress.comment_id is None
    is_from_terminal = request.trigger.kind is TriggerKind.COMMAND_LINE
    if is_from_terminal and has_no_comment and conclusion.exit_code in {2, 5}:
        return conclusion  # the person at the terminal sees the error there
    report = build_report(values, conclusion.failure, include_trace=True)
    url = forge.comment(report, values.current_settings.pace.final_comment)
    return replace(conclusion, comment_url=url)


def conclusion_from_error(values: StageValues, error: Exception | RunStopped) -> Conclusion:
    """Return the end of a run that this error has ended."""
    if isinstance(error, ResolverError | RunStopped):
        is_silent = isinstance(error, ResolverError) and error.is_silent
        failure = values.redact(failure_from_error(error))
        return Conclusion(failure, error.exit_code, is_silent)
    if isinstance(error, OSError):
        return Conclusion(values.redact(failure_from_os_error(error)), 1)
    what = f"an internal error of Resolver: {error!r}"
    return Conclusion(values.redact(RunFailure(kind="error", what=what)), 1)


def failure_from_os_error(error: OSError) -> RunFailure:
    """Return the failure for an error of the operating system, described for a person.

    The path stays in the log of the machine: whoever reads the comment has no use for it.
    """
    if error.errno in _DISK_FULL:
        what = "the disk of the machine that runs Resolver is full"
        return RunFailure(kind="error", what=what, next_step="free some disk space, then ask again")
    what = f"the machine that runs Resolver failed ({error.strerror or type(error).__name__})"
    return RunFailure(
        kind="error", what=what, next_step="see the log of Resolver for the path, then ask again"
    )


def _write_artifacts(
    values: StageValues, publication: Publication, conclusion: Conclusion
) -> Conclusion:
    """Write the output folder except outcome.json.

    A file that can't be written does not prevent the others; the returned conclusion has the
    failure.
    """
    output, log, patch = values.request.output, values.log, values.patch
    pull = publication.pull_request
    steps: list[Callable[[], None]] = []
    if log is not None:
        steps.append(lambda: output.write_patch(patch.diff if patch else b""))
    if pull is not None and pull.body:
        steps.append(lambda: output.write_pull_request(pull))
    if not can_be_published(values, conclusion.failure):
        steps.append(output.withdraw_change)
    if log is not None:
        steps.append(lambda: output.write_traces(log.state.events))
        steps.append(log.close)
    for step in steps:
        try:
            step()
        except OSError as error:
            conclusion = conclusion.with_failure(_report_unwritten(values, error), 1)
    return conclusion


def _report_unwritten(values: StageValues, error: OSError) -> RunFailure:
    failure = values.redact(failure_from_os_error(error))
    logger.error("run %s could not write its output: %s", values.request.run, error)
    return failure
