"""Builds the report of a run from the values of the stages that it has reached, with its warnings,
and prints its result on the terminal."""

import re
import shlex
import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Literal, TypeVar

from rich.console import Console
from rich.text import Text

from resolver.agents.built_in import REVIEWER
from resolver.agents.registry import find_agent_model, is_answering_agent
from resolver.config.templates import render
from resolver.config.temporary_directory import PREFIX as TEMPORARY_PREFIX
from resolver.controller.confirmation import pending_approval_in
from resolver.errors import Cause
from resolver.events.actions import Delegate
from resolver.events.lifecycle import ModelReplied, ServiceReplied, roots_of
from resolver.events.run_log import RunLog
from resolver.events.state import State
from resolver.git.deceptive_text import find_deceptive_text
from resolver.git.policy import MAX_PATCH_BYTES
from resolver.git.tree import read_changes
from resolver.github.comments.comment_text import verification_values
from resolver.github.comments.report import Report, RunFailure
from resolver.github.comments.templates import render_comment
from resolver.memory.skills.library import is_shown_to_agents
from resolver.models.approval import PendingApproval
from resolver.models.known_failures import OUTAGES
from resolver.models.run import (
    CheckedCommand,
    Outcome,
    Patch,
    Publication,
    RunLimits,
    RunState,
    UnverifiedReason,
)
from resolver.models.verification import UNFINISHED
from resolver.publishing import commit_builder
from resolver.runs.outcome_file import EarlierPublication, OutcomeFile, RecordedDifference
from resolver.runs.stages import ExecutedRun, PreparedRun, RunRequest, RunResult, StageValues
from resolver.runs.wiring.agents import denied_models
from resolver.runs.wiring.models import model_name, recording_of
from resolver.storage.earlier_runs import MAX_CHANGE_BYTES
from resolver.trace import markdown
from resolver.trace.plain import for_terminal, relative_command

CleanedModel = TypeVar("CleanedModel", RunFailure, Outcome)

PERMANENT_REFUSALS: frozenset[Cause] = frozenset(
    {"push_permission", "token", "sso", "archived", "moved", "secret_scanning"}
)
"""Causes of a refused push that also refuse every other push to the repository."""


def is_answer_run(values: StageValues) -> bool:
    """Return True if the run answers a question, so that its working tree is not published.

    That is the work of some agents; any other agent can find that only an answer was asked for. If
    it changed something all the same, that is published.
    """
    outcome, executed = values.outcome, values.executed
    if outcome is not None and outcome.declined == "answered":
        return executed is None or executed.patch.is_empty
    opening = values.log.opening if values.log else None
    agents = values.prepared.agents.agents if values.prepared else ()
    return opening is not None and is_answering_agent(opening.agent, agents)


def is_review_run(log: RunLog | None) -> bool:
    """Return True if the run's agent reviews a pull request, so that its remarks become a
    review."""
    opening = log.opening if log else None
    return opening is not None and opening.agent == REVIEWER.name and opening.task.pull is not None


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


def outage_of(
    values: StageValues, failure: RunFailure | None, comment_cause: Cause | None = None
) -> Cause | None:
    """Return the cause of the outage that ended the run or prevented its final comment; None
    for none.

    comment_cause: why the final comment could not be written.
    """
    # An outage (GitHub or the model provider is down, or a rate limit is reached) passes without
    # anybody changing anything, so the entry points repeat the run later. Every other error needs a
    # person, and a repetition would only cost money and fail again.
    outcome = values.outcome
    error_cause = outcome.because if outcome and outcome.state is RunState.ERROR else None
    cause = failure.cause if failure is not None else error_cause
    return next((candidate for candidate in (cause, comment_cause) if candidate in OUTAGES), None)


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


def find_missing_verification(values: StageValues) -> UnverifiedReason | None:
    """Return the verification that the change lacks to be ready for review; None for nothing."""
    if any(conflict.untouched for conflict in values.publication.conflicts):
        return "unedited_conflict"
    verification, outcome = values.verification, values.outcome
    is_finished = outcome is not None and outcome.state is RunState.FINISHED
    if outcome is None or not is_finished or not outcome.task_completed:
        return "unfinished"
    return None if verification is not None and verification.is_ready else "not_verified"


def _commands_to_show(values: StageValues) -> tuple[CheckedCommand, ...]:
    """Return the commands that the agent executed, as they would be written at the root."""
    if values.executed is None:
        return ()
    roots = roots_of(values.log.state.events if values.log else ())
    return tuple(
        command.model_copy(update={"command": relative_command(command.command, roots)})
        for command in values.executed.commands
    )


def build_report(
    values: StageValues,
    failure: RunFailure | None = None,
    pending_approval: PendingApproval | None = None,
    *,
    include_trace: bool = False,
) -> Report:
    """Return the report with everything that comments say about the run.

    include_trace: render the trace, which only comments show.
    pending_approval: the action that waits for approval now; by default the one at the end of the
        log.
    """
    request, settings, log = values.current_request, values.current_settings, values.log
    unverified = find_missing_verification(values)
    publication = values.publication
    pull = publication.pull_request
    # Laid out when it is shown: a report is made again once its comment is written.
    trace = cache(partial(markdown.CommentTrace, log.state.events)) if log else None
    prepared = values.prepared
    report = Report(
        trigger=request.trigger,
        run=request.run,
        model=displayed_model(values),
        mention=settings.mention,
        task=values.task,
        outcome=values.outcome,
        base=values.base,
        repository_url=None
        if request.is_local
        else f"{settings.github_server_url.rstrip('/')}/{request.trigger.repository}",
        base_committed_at=prepared.base_committed_at if prepared else None,
        patch=values.patch,
        verification=values.verification,
        commands=_commands_to_show(values),
        branch=publication.branch,
        pull_request=pull,
        review=publication.review,
        failure=failure,
        draft=commit_builder.is_draft(settings.draft, unverified),
        unverified=unverified,
        **({"conventions": prepared.conventions} if prepared else {}),
        warnings=(*request.notices, *values.warnings, *(pull.notes if pull else ())),
        render_trace=(lambda limit: trace().render(limit)) if trace and include_trace else None,
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
    return _without_host_paths(report, request)


def _without_host_paths(report: Report, request: RunRequest) -> Report:
    """Return the report without the folders of this machine in Resolver's own words.

    Errors name files for the operator. In public, the folder says only how the machine is set up.
    """
    folders = [request.output.folder.absolute().parent, request.host.cache]
    named = [str(folder) for folder in folders if folder != Path("/")]
    names = [re.escape(name) for name in sorted(named, key=len, reverse=True)]
    temporary = rf"{re.escape(tempfile.gettempdir())}/{TEMPORARY_PREFIX}[^/\s]+"
    pattern = re.compile(f"(?:{'|'.join([*names, temporary])})/")

    def clean(model: CleanedModel, *fields: str) -> CleanedModel:
        texts = {
            field: pattern.sub("", text) for field in fields if (text := getattr(model, field))
        }
        return model.model_copy(update=texts)

    changes = {
        "failure": clean(report.failure, "what", "next_step") if report.failure else None,
        "outcome": clean(report.outcome, "reason", "next_step") if report.outcome else None,
        "warnings": tuple(pattern.sub("", warning) for warning in report.warnings),
    }
    return report.model_copy(update=changes)


def publishing_route(
    values: StageValues, failure: RunFailure | None
) -> Literal["comment", "folder"] | None:
    """Return how the kept change can still be published: by a comment, from its folder, or not at
    all (None) if the push would be refused again or nobody asks for it any more."""
    request = values.request
    is_over = failure is not None and (failure.is_lasting or failure.withdrawn)
    can_be_retried = can_be_published(values, failure) and not is_over
    change = request.output.change if can_be_retried else None
    if change is None or change.bundle is None:
        return None
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


_STATE_BY_FAILURE = {
    "refused": RunState.REFUSED,
    "policy": RunState.REFUSED,
    "ceiling": RunState.REFUSED,
    "limit": RunState.LIMIT,
    "stopped": RunState.STOPPED,
}


def outcome_file_of(
    values: StageValues, publication: Publication, failure: RunFailure | None, exit_code: int
) -> OutcomeFile:
    """Return the content of outcome.json."""
    request, patch = values.current_request, values.patch
    trigger, log_state = request.trigger, values.log.state if values.log else State()
    state, reason = _state_and_reason(values.outcome, failure, publication)
    outcome = values.outcome or Outcome(state=state, cost=0.0)
    earlier = request.continuation.publication if request.continuation else Publication()
    return OutcomeFile(
        run=request.run,
        state=state,
        reason=reason,
        next_step=failure.next_step if failure else outcome.next_step,
        limit=outcome.limit,
        exit_code=exit_code,
        key=trigger.key,
        repository=trigger.repository,
        number=trigger.number,
        issue=trigger.subject,
        model=displayed_model(values),
        base=values.base,
        commit=publication.commit,
        tree=patch.tree if patch else None,
        branch=publication.branch,
        pull_request=publication.pull_request,
        comment_url=publication.comment_url,
        review=publication.review,
        repeated=publication.repeated,
        earlier=EarlierPublication.model_validate(earlier, from_attributes=True),
        iterations=outcome.iterations,
        cost=outcome.cost,
        tokens=outcome.tokens,
        models=log_state.metrics,
        services=log_state.services,
        seconds=outcome.seconds,
        task_completed=outcome.task_completed,
        message=outcome.message,
        places=outcome.places,
        files=patch.files if patch else (),
        evidence=(values.verification or UNFINISHED).evidence(),
        divergences=tuple(
            RecordedDifference.model_validate(event, from_attributes=True)
            for event in log_state.divergences
        ),
        traceparent=request.traceparent,
    )


def _state_and_reason(
    outcome: Outcome | None, failure: RunFailure | None, publication: Publication
) -> tuple[RunState, str]:
    """Return state and reason. A failure takes precedence over the outcome of the agent."""
    if failure is not None:
        return _STATE_BY_FAILURE.get(failure.kind, RunState.ERROR), failure.what
    if outcome is None:
        return RunState.FINISHED, "an earlier run has already handled this request"
    default = "finished" if publication.pull_request else "finished without a change"
    return outcome.state, outcome.reason or default


MAX_NAMED_PLACES = 10
"""Maximum number of deceptive characters that warnings name one by one."""


def execution_warnings(
    prepared: PreparedRun, executed: ExecutedRun, log: RunLog, is_answer: bool
) -> Iterator[str]:
    """Yield the warnings of an execution, which the pull request and the final comment show.

    They concern, in this order: changed instructions for agents, text of the change that looks
    different from what it is, files that the change does not contain, agents whose model is not
    allowed, estimated costs, and differences found when recorded actions were executed again.
    """
    settings = prepared.settings
    if not is_answer:
        paths = [change.path for change in executed.patch.files if is_shown_to_agents(change.path)]
        if paths:
            yield render("run/instructions_changed.md.j2", paths=paths).strip()
    if not is_answer and not executed.files_with_secrets:
        yield from _deceptive_text_warnings(prepared, executed.patch)
    if executed.change is not None and not is_answer:
        if executed.change.left_out:
            yield render("run/left_out.md.j2", paths=executed.change.left_out).strip()
        if executed.change.generated:
            yield render("run/generated_left_out.md.j2", paths=executed.change.generated).strip()
    delegates = (e.agent for e in log.state.events if isinstance(e, Delegate))
    yield from denied_models(prepared.agents, {settings.agent, *delegates})
    completions = [
        e.completion for e in log.state.events if isinstance(e, ModelReplied | ServiceReplied)
    ]
    if estimated := sum(completion.is_cost_estimated for completion in completions):
        total = len(completions)
        yield render("run/estimated_cost.md.j2", count=estimated, total=total).strip()
    if divergences := log.state.divergences:
        template = "run/diverged.md.j2" if recording_of(settings) else "run/rebuilt.md.j2"
        yield render(template, divergences=divergences).strip()


def _deceptive_text_warnings(prepared: PreparedRun, patch: Patch) -> Iterator[str]:
    """Yield a warning for each place where added lines look different from what they are."""
    if len(patch.diff) > MAX_PATCH_BYTES:
        return  # a change of that size can't be published
    git = prepared.workspace.git
    places = find_deceptive_text(git, read_changes(git, patch.base, patch.tree))
    for place in places[:MAX_NAMED_PLACES]:
        yield render("run/deceptive_text.md.j2", place=place, left_out=0).strip()
    if len(places) > MAX_NAMED_PLACES:
        left_out = len(places) - MAX_NAMED_PLACES
        yield render("run/deceptive_text.md.j2", place=None, left_out=left_out).strip()


def print_result(result: RunResult, console: Console, resume_command: str | None = None) -> None:
    """Print how the run ended. Control sequences in text from outside are removed.

    resume_command: the command line that resumes the run; None if it can't be resumed.
    """
    output, verification = result.request.output, verification_values(result.report)
    text = render(
        "run/result.txt.j2",
        result=result,
        outcome=result.outcome,
        publication=result.publication,
        failure=result.failure,
        output=output,
        dry=not result.request.publish,
        resume_command=resume_command,
        diff_command=diff_command(result),
        files=() if result.report.answers else result.outcome_file.files,
        verdict=render_comment("_verdict_text.md.j2", **verification)
        if verification["verification"]
        else "",
    )
    # The first line says how the run ended.
    style = {0: "bold green", 3: "bold"}.get(result.exit_code, "bold red")
    for line in text.strip().splitlines():
        console.print(Text(for_terminal(line), style=style), soft_wrap=True)
        style = ""


def diff_command(result: RunResult) -> str | None:
    """Return the command line that shows the change on its local branch; None if there is none."""
    branch, opening = result.publication.branch, result.log.opening if result.log else None
    if not (branch and opening and result.request.is_local):
        return None
    base = opening.task.base_branch or opening.base
    repository = Path(result.request.trigger.repository)
    place = [] if repository == Path.cwd() else ["-C", str(repository)]
    return shlex.join(["git", *place, "diff", f"{base}...{branch}"])
