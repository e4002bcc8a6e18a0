"""Builds the report of a run from the values of the stages that it has reached."""

from typing import TYPE_CHECKING, Literal

from resolver.agents.readonly import REVIEWER
from resolver.agents.registry import find_agent_model, is_answering_agent
from resolver.config.lazy_module import lazy_module
from resolver.controller.confirmation import pending_approval_in
from resolver.errors import Cause
from resolver.events.lifecycle import roots_of
from resolver.events.run_log import RunLog
from resolver.github.comments.report import CommentPreferences, Report, RunFailure
from resolver.models.approval import PendingApproval
from resolver.models.known_failures import OUTAGES
from resolver.models.run import (
    CheckedCommand,
    Outcome,
    Publication,
    RunLimits,
    RunState,
    Unverified,
)
from resolver.models.verification import UNFINISHED
from resolver.runs.output import MAX_CHANGE_BYTES, OutcomeFile, build_outcome_file
from resolver.runs.stages import PreparedRun, StageValues
from resolver.runs.wiring.models import model_name
from resolver.trace.markdown import CommentTrace
from resolver.trace.plain import relative_command

if TYPE_CHECKING:
    from resolver.github.comments import comment_text, message_parts
    from resolver.publishing import commit_builder
else:  # needed after the agent has worked
    comment_text = lazy_module("resolver.github.comments.comment_text")
    message_parts = lazy_module("resolver.github.comments.message_parts")
    commit_builder = lazy_module("resolver.publishing.commit_builder")

PERMANENT_REFUSALS: frozenset[Cause] = frozenset(
    {"push_permission", "token", "sso", "archived", "disabled", "moved", "secret_scanning"}
)
"""Causes of a refused push that also refuse every other push to the repository."""


def is_answer_run(values: StageValues) -> bool:
    """Return True if the run answers a question, so that its working tree is not published."""
    opening = values.log.opening if values.log else None
    agents = values.prepared.agents.agents if values.prepared else ()
    return opening is not None and is_answering_agent(opening.agent, agents)


def is_review_run(log: RunLog | None) -> bool:
    """Return True if the run's agent reviews a pull request, so that its remarks become a
    review."""
    opening = log.opening if log else None
    return opening is not None and opening.agent == REVIEWER and opening.task.pull is not None


def is_merge(prepared: PreparedRun) -> bool:
    """Return True if the work is a merge with conflicts. It is published even if nothing else
    changed."""
    pull = prepared.task.pull
    return pull is not None and bool(pull.conflicts)


def max_extended_limits(prepared: PreparedRun) -> RunLimits:
    """Return the totals up to which comments can extend the limits of the run."""
    limits = prepared.settings.max_extended_limits
    cost = min(limits.max_budget, prepared.max_cost)
    return limits.model_copy(update={"max_budget": cost})


def displayed_model(values: StageValues) -> str:
    """Return the name of the model that the run's agent uses, for a person."""
    settings = values.current_settings
    agents = values.prepared.agents.agents if values.prepared else ()
    opening = values.log.opening if values.log else None
    model = find_agent_model(settings.agent, agents) or model_name(settings)
    return model or (opening.model if opening else "")


def outage_of(values: StageValues, failure: RunFailure | None, comment_cause: Cause = "") -> Cause:
    """Return the cause of the outage that ended the run or prevented its final comment; "" for
    none.

    comment_cause: why the final comment could not be written.
    """
    # An outage (GitHub or the model provider is down, or a rate limit is reached) passes without
    # anybody changing anything, so the entry points repeat the run later. Every other error needs a
    # person, and a repetition would only cost money and fail again.
    outcome = values.outcome
    error_cause: Cause = outcome.because if outcome and outcome.state is RunState.ERROR else ""
    cause = failure.cause if failure is not None else error_cause
    return next((candidate for candidate in (cause, comment_cause) if candidate in OUTAGES), "")


def can_be_published(values: StageValues, failure: RunFailure | None) -> bool:
    """Return True if the output folder holds a finished change that is not public."""
    log, publication = values.log, values.publication
    is_finished = log is not None and log.state.run_state is RunState.FINISHED
    has_change = is_finished and not is_answer_run(values)  # a rejected task is not FINISHED
    # A pushed branch without its pull request is only half of a publication.
    is_incomplete = failure is not None and publication.pull_request is None
    is_public = publication.branch is not None and not is_incomplete
    change = values.request.output.change if has_change and not is_public else None
    return change is not None and change.bundle is not None


def find_missing_verification(values: StageValues) -> Unverified:
    """Return the verification that the change lacks to be ready for review; "" for nothing."""
    if any(conflict.untouched for conflict in values.publication.conflicts):
        return "untouched"
    verification, outcome = values.verification, values.outcome
    if outcome is None or not is_complete(outcome):
        return "unfinished"
    return "" if verification is not None and verification.is_ready else "not_verified"


def is_complete(outcome: Outcome) -> bool:
    """Return True if the agent finished and calls its work complete."""
    return outcome.state is RunState.FINISHED and outcome.task_completed


def _commands_to_show(values: StageValues) -> tuple[CheckedCommand, ...]:
    """Return the commands that the agent executed, as they would be written at the root."""
    if values.executed is None:
        return ()
    roots = roots_of(values.log.state.events if values.log else ())
    return tuple(
        command.model_copy(update={"command": relative_command(command.command, roots)})
        for command in values.executed.commands
    )


def _outcome_to_show(values: StageValues) -> Outcome | None:
    """Return the outcome with the parts of its message apart; an answer stays as it was written."""
    outcome = values.outcome
    return (
        outcome
        if outcome is None or is_answer_run(values)
        else message_parts.move_labelled_parts(outcome)
    )


def build_report(
    values: StageValues,
    failure: RunFailure | None = None,
    pending_approval: PendingApproval | None = None,
    *,
    include_trace: bool = False,
) -> Report:
    """Return the report with everything that people are told about the run.

    include_trace: render the trace, which only comments show.
    pending_approval: the action that waits for approval now; by default the one at the end of the
        log.
    """
    request, settings, log = values.current_request, values.current_settings, values.log
    unverified = find_missing_verification(values)
    publication = values.publication
    pull = publication.pull_request
    trace = CommentTrace(log.state.events) if log and include_trace else None
    prepared = values.prepared
    return Report(
        trigger=request.trigger,
        run=request.run,
        model=displayed_model(values),
        comment_preferences=CommentPreferences.from_settings(settings),
        task=values.task,
        outcome=_outcome_to_show(values),
        base=values.base or "",
        repository_url=""
        if request.is_local
        else f"{settings.github_server_url.rstrip('/')}/{request.trigger.repository}",
        base_committed_at=values.base_committed_at,
        patch=values.patch,
        verification=values.verification,
        critique=values.critique,
        commands=_commands_to_show(values),
        branch=publication.branch,
        pull_request=pull,
        review=publication.review,
        failure=failure,
        draft=commit_builder.is_draft(settings.draft, unverified),
        unverified=unverified,
        **({"conventions": prepared.conventions} if prepared else {}),
        preferences=settings.pull_request_preferences,
        warnings=(*request.notices, *values.warnings, *(pull.notes if pull else ())),
        trace_markdown=trace.render(comment_text.RESERVED_TRACE_LENGTH) if trace else "",
        render_trace=trace.render if trace else None,
        log_url=request.log_url,
        page=request.page,
        progress_comment_id=values.progress.comment_id if values.progress else None,
        continues=request.can_be_continued and log is not None,
        publishable=publishing_route(values, failure),
        pending_approval=pending_approval or (pending_approval_in(log.state) if log else None),
        answers=is_answer_run(values),
        publication=publication,
        retry_until=request.retry_until if outage_of(values, failure) else None,
    )


def publishing_route(
    values: StageValues, failure: RunFailure | None
) -> Literal["", "comment", "folder"]:
    """Return how the kept change can still be published: by a comment, from its folder, or not at
    all ("") if the push would be refused again."""
    request = values.request
    is_permanent = failure is not None and failure.is_lasting
    change = (
        request.output.change if can_be_published(values, failure) and not is_permanent else None
    )
    if change is None or change.bundle is None:
        return ""
    # A GitHub Actions job has no disk that outlives it: the change could be kept only in the
    # repository, which accepts no push in these cases.
    is_refused_for_good = failure is not None and failure.cause in PERMANENT_REFUSALS
    fits_in_repository = change.bundle.stat().st_size <= MAX_CHANGE_BYTES
    is_kept_in_repository = (
        request.can_be_continued
        and fits_in_repository
        and not (is_refused_for_good and request.actions_run)
    )
    return "comment" if is_kept_in_repository else "folder"


def outcome_file_of(
    values: StageValues, publication: Publication, failure: RunFailure | None, exit_code: int
) -> OutcomeFile:
    """Return the content of outcome.json."""
    request, log = values.current_request, values.log
    earlier = request.continuation.publication if request.continuation else Publication()
    return build_outcome_file(
        run=request.run,
        trigger=request.trigger,
        model=displayed_model(values),
        base=values.base,
        outcome=values.outcome,
        patch=values.patch,
        publication=publication,
        earlier=earlier,
        evidence=(values.verification or UNFINISHED).evidence(),
        critique=values.critique,
        failure=failure,
        exit_code=exit_code,
        divergences=log.state.divergences if log else [],
        log_state=log.state if log else None,
        traceparent=request.traceparent,
    )
