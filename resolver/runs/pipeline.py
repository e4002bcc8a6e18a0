"""The pipeline of one run: its stages in order, from a request to a result.

    authorize  check who asks, reserve quota, comment  AcceptedRun
    prepare    read the task, clone, configure         RunTask, PreparedRun
    execute    open the log, let the agent work        ExecutedRun
    verify     execute the project's checks            Verification
    publish    judge the change, push, propose, reply  PublishedRun, PostedReplies
    report     write the final comment and the files   RunResult

Before them, an entry point parses an event into a `RunRequest`. Each stage is a function of the
values before it and returns frozen values of `resolver.runs.stages`. No stage calls an earlier one.
If a stage fails, the values of the stages before it remain and the final comment is written from
them. `run_pipeline` never raises, except LeaseLost in a process of a fleet whose run was taken
over.
"""

import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.config.temporary_directory import temporary_directory
from resolver.controller.limits import derive_outcome
from resolver.errors import PolicyViolation, ResolverError, RunStopped
from resolver.events.run_log import RunLog
from resolver.git.policy import MAX_PATCH_BYTES, enforce_policy, withhold_secrets
from resolver.github.events.permission import authorize
from resolver.github.github_forge import GitHubForge
from resolver.models.pull_request import PostedReplies, describe_review
from resolver.models.run import (
    Command,
    Outcome,
    Publication,
    RunState,
)
from resolver.publishing import commit_builder, pull_request, review, update_branch
from resolver.runs.conversation.commands import apply_approvals
from resolver.runs.conversation.comments import (
    Conclusion,
    approval_notifier,
    conclude,
    conclusion_from_error,
    start_progress_comment,
)
from resolver.runs.conversation.watch import require_open_request, require_standing_request
from resolver.runs.execute import ExecutionRequest, execute
from resolver.runs.output import StoredRequest
from resolver.runs.prepare import (
    clone,
    configure,
    find_finished_work,
    find_pushed_work,
    load_task,
    open_run_log,
)
from resolver.runs.quotas.admission import read_refs, reserve_quota
from resolver.runs.reporting import (
    build_report,
    execution_warnings,
    is_answer_run,
    is_merge,
    is_review_run,
    max_extended_limits,
)
from resolver.runs.resuming.resume import change_limits, continue_run
from resolver.runs.spans import export_spans, with_trace
from resolver.runs.stage_thread import StageThread
from resolver.runs.stages import (
    ExecutedRun,
    PreparedRun,
    PublishedRun,
    RunRequest,
    RunResult,
    StageValues,
)
from resolver.runs.verify import ChangeVerifier
from resolver.runs.wiring.models import preload_models

logger = logging.getLogger("resolver.runs.pipeline")


Preload = Callable[[Settings], object]
"""Starts to load, without blocking, whatever the model of the settings needs."""


def run_pipeline(
    request: RunRequest, forge: GitHubForge | None, preload: Preload = preload_models
) -> RunResult:
    """Execute a request from its start to its end and return the result. Raises only LeaseLost.

    forge: where the request comes from and its result goes; None for a checkout on this machine.
    preload: called after the requester was authorized, so that an unauthorized request costs
    nothing. It must return at once.
    """
    settings, started_at = request.load_settings({}), request.now()
    # `_stages` is a generator, so that the newest values are known when a stage raises: it yields a
    # new immutable snapshot after each stage, and the snapshot before the failing stage is what the
    # final comment is written from. A plain function would lose its local values with the
    # exception.
    values = StageValues(with_trace(request), settings)
    work = StageThread(values, partial(_stages, forge=forge, preload=preload))
    try:
        work.run()
        conclusion = Conclusion(exit_code=_exit_code(work.values))
    except (ResolverError, RunStopped) as error:
        conclusion = conclusion_from_error(values, error)
    except Exception as error:
        logger.exception("run %s failed", request.run)
        conclusion = conclusion_from_error(values, error)
    values = work.values
    # The execute stage did not return, so the log is the only record of how far the agent got.
    if values.executed is None and values.log is not None:
        values = replace(values, interrupted=derive_outcome(values.log.state))
    result = conclude(values, conclusion, forge)
    export_spans(result, started_at)
    return result


def _stages(
    values: StageValues, forge: GitHubForge | None, preload: Preload
) -> Generator[StageValues, None, None]:
    """Run the stages in order and yield all values that are known after each one.

    The caller keeps the last yielded snapshot if the next stage raises.
    """
    request, settings = values.request, values.settings
    finished_work = find_finished_work(request, forge)
    if finished_work is not None:
        yield (values := replace(values, published=finished_work))
        if finished_work.publication.repeated:
            return
    if request.ended_by is None:
        _write_request(request, settings)
    if forge is not None:
        authorize(request.trigger, forge, settings.access_policy)
    if request.ended_by is not None:
        if request.has_log:
            yield replace(values, log=open_run_log(request, settings, None))
        raise request.ended_by
    if forge is not None:
        require_open_request(request, settings, forge)
    preload(settings)
    if finished_work is None and (pushed_work := find_pushed_work(request, forge)):
        yield (values := replace(values, published=pushed_work))
        if pushed_work.publication.repeated:
            return
    accepted = reserve_quota(request, settings, forge, read_refs(request, forge))
    yield (values := replace(values, accepted=accepted))
    progress = start_progress_comment(request, settings, values.publication, forge)
    yield (values := replace(values, progress=progress))
    run_task = load_task(request, settings, forge, progress)
    yield (values := replace(values, run_task=run_task, log=run_task.log))
    _update_progress(values, read=True)
    with temporary_directory() as folder:
        task, workspace = clone(run_task, settings, folder / "clone.git", accepted.snapshot)
        prepared = configure(accepted, run_task, task, workspace, forge, folder)
        yield (values := replace(values, prepared=prepared))
        _update_progress(values, base=prepared.workspace.base)
        if prepared.update != "agent":
            yield from _update_branch(values, prepared, forge)
        else:
            yield from _work_and_publish(values, prepared, forge, folder)


def _update_progress(values: StageValues, **changes: Any) -> None:
    """Update the run's progress comment."""
    if values.progress is not None:
        values.progress.show(**changes)


def _write_request(request: RunRequest, settings: Settings) -> None:
    """Write request.json, redacted, so that the run can be resumed even if it is killed before its
    first event. An option that contains a secret is not stored."""
    redactor = request.redactor(settings)
    options = {
        name: value
        for name, value in request.options.items()
        if value is not None and redactor.redact_text(str(value)) == str(value)
    }
    stored = StoredRequest.model_validate(replace(request, options=options), from_attributes=True)
    request.output.write_request(redactor(stored))


def _update_branch(
    values: StageValues, prepared: PreparedRun, forge: GitHubForge | None
) -> Iterator[StageValues]:
    """Bring a pull request up to date in the cases that need no agent: it is up to date already, or
    git merges the base branch without conflicts."""
    workspace = prepared.workspace
    assert workspace.pull is not None  # plan_update says "agent" without one
    publishes = prepared.request.publish and prepared.update == "clean_merge"
    executed = ExecutedRun(
        update_branch.update_outcome(prepared.update, workspace.pull),
        update_branch.unchanged_patch(workspace),
    )
    builder = _commit_builder(values, prepared, executed, forge)
    if publishes:
        update_branch.require_publishable_update(builder)
        notices = require_standing_request(values.request, values.settings, forge)
        executed = replace(executed, warnings=notices)
        values.request.control.raise_if_stopped()
    yield (values := replace(values, executed=executed))
    if not publishes:
        return
    started = time.monotonic()
    pushed = update_branch.publish_clean_merge(builder)
    # The branch may have been brought up to date while this run was cloning.
    if pushed.publication.how == "unchanged":
        outcome = update_branch.update_outcome("up_to_date", workspace.pull)
        values = replace(values, executed=replace(executed, outcome=outcome))
    for change in pull_request.propose(builder, pushed, started):
        published = PublishedRun(change.publication, change.notices)
        yield (values := replace(values, published=published))


def _work_and_publish(
    values: StageValues, prepared: PreparedRun, forge: GitHubForge | None, folder: Path
) -> Iterator[StageValues]:
    """Let the agent work, and publish its result."""
    # Fail before the agent costs anything if the merge could not be pushed anywhere.
    if prepared.request.publish and prepared.task.trigger.command is Command.UPDATE:
        empty = ExecutedRun(
            Outcome(state=RunState.RUNNING), update_branch.unchanged_patch(prepared.workspace)
        )
        update_branch.require_publishable_update(_commit_builder(values, prepared, empty, forge))
    log = values.log or open_run_log(prepared.request, prepared.settings, values.progress)
    yield (values := replace(values, log=log))
    verifier = ChangeVerifier(prepared, log)
    executed = _execute(values, prepared, log, forge, folder, verifier)
    yield (values := replace(values, executed=executed))
    if _exit_code(values) == 0 and not is_answer_run(values) and not is_review_run(log):
        yield (values := replace(values, verification=verifier.conclude(executed.patch)))
    yield from _publish(values, prepared, executed, log, forge)


def _execute(
    values: StageValues,
    prepared: PreparedRun,
    log: RunLog,
    forge: GitHubForge | None,
    folder: Path,
    verifier: ChangeVerifier,
) -> ExecutedRun:
    """Run the agent and take its change out of the sandbox, without the secrets of the run."""
    request, workspace = prepared.request, prepared.workspace
    if values.run_task is not None and values.run_task.log is not None:
        # Add to a resumed log what is new: limits, the person's message and approvals.
        change_limits(log, _limit_overrides(prepared, log))
        continue_run(log, request.run, request.continuation, max_extended_limits(prepared))
        apply_approvals(log, request.run, request.trigger, request.continuation, request.control)
    execution = ExecutionRequest(
        prepared,
        log,
        folder,
        approval_notifier(values, forge),
        feedback=lambda patch: None if is_answer_run(values) else verifier.feedback(patch),
    )
    result = execute(execution)
    outcome, exported_patch = result.outcome, result.patch
    # An answer with a change is not only an answer: the change is published like any other.
    is_answer = is_answer_run(values) or (
        outcome.declined == "answered" and exported_patch.is_empty
    )
    discarded = exported_patch.files if is_answer else ()
    if is_answer:
        outcome = _with_places(review.append_remarks(outcome, log))
        exported_patch = update_branch.unchanged_patch(workspace)
    patch, files_with_secrets = withhold_secrets(
        workspace, exported_patch, prepared.redactor, MAX_PATCH_BYTES
    )
    # A change with secrets stays out of the output folder: a later command could publish it.
    if not (is_answer or files_with_secrets):
        assert result.change is not None
        request.output.keep_change(result.change)
    executed = replace(result, outcome=outcome, patch=patch, files_with_secrets=files_with_secrets)
    warnings = [*result.warnings, *execution_warnings(prepared, executed, log, is_answer)]
    if discarded:
        warnings.append(render("run/discarded.md.j2", files=discarded).strip())
    return replace(executed, warnings=tuple(warnings))


def _limit_overrides(prepared: PreparedRun, log: RunLog) -> Mapping[str, float]:
    """Return the limits that a person has set for a resumed run, with the budget cut to what is
    left."""
    overrides, max_cost = prepared.request.limit_overrides, prepared.max_cost
    budget = overrides.get("max_budget", log.state.limits.max_budget)
    reduced = {"max_budget": max_cost} if budget > max_cost else {}
    return {**overrides, **reduced}


def _with_places(outcome: Outcome) -> Outcome:
    """Return the outcome of an answer, with the lines of code that it names in its message."""
    reason = outcome.reason or ("answered" if outcome.state is RunState.FINISHED else None)
    message = render("run/places.md.j2", message=outcome.message, places=outcome.places).strip()
    return outcome.model_copy(update={"message": message, "reason": reason})


def _publish(
    values: StageValues,
    prepared: PreparedRun,
    executed: ExecutedRun,
    log: RunLog,
    forge: GitHubForge | None,
) -> Iterator[StageValues]:
    """Publish the result of the work (a review or a change) and the replies to review threads."""
    is_done = _exit_code(values) == 0
    if is_done:
        notices = require_standing_request(values.request, values.settings, forge)
        executed = replace(executed, warnings=(*executed.warnings, *notices))
        yield (values := replace(values, executed=executed))
        values.request.control.raise_if_stopped()
    if is_done and forge is not None and is_review_run(log):
        reviewed = _publish_review(values, prepared, log, forge)
        yield (values := replace(values, published=reviewed))
    if is_done and not is_answer_run(values) and values.publication.pull_request is None:
        _check_policy(prepared, executed)
        for published in _publish_change(values, prepared, executed, forge):
            yield (values := replace(values, published=published))
    yield replace(values, replies=_answer_threads(values, prepared, log, forge))


def _publish_review(
    values: StageValues, prepared: PreparedRun, log: RunLog, forge: GitHubForge
) -> PublishedRun:
    """Publish the review of a pull request, or only describe it for a dry run."""
    report = build_report(values)
    made = review.build_review(prepared.workspace, log, forge.whoami())
    published = values.published or PublishedRun(values.publication)
    if made is None:
        return published
    if prepared.request.publish:
        published_review = review.publish_review(report, made, forge, log)
    else:
        published_review = describe_review(made)
    prepared.request.output.write_review(review.render_review(report, made))
    return replace(
        published, publication=published.publication.model_copy(update={"review": published_review})
    )


def _publish_change(
    values: StageValues, prepared: PreparedRun, executed: ExecutedRun, forge: GitHubForge | None
) -> Iterator[PublishedRun]:
    """Commit and push the change and open or update the pull request. Yield what is public after
    each step."""
    builder = _commit_builder(values, prepared, executed, forge)
    if not prepared.request.publish:
        described = pull_request.render_pull_request(builder.request.report)
        yield PublishedRun(Publication(pull_request=described))
        return
    change = commit_builder.PushedChange(Publication())
    for change in pull_request.publish(builder):
        yield PublishedRun(change.publication, change.notices)
    if forge is None:
        return
    pending_checks = pull_request.report_pending_checks(change.publication, forge)
    yield PublishedRun(change.publication, (*change.notices, *pending_checks))


def _answer_threads(
    values: StageValues, prepared: PreparedRun, log: RunLog, forge: GitHubForge | None
) -> PostedReplies:
    """Reply in the review threads that the request asks about."""
    if forge is None or not prepared.request.publish or not prepared.task.asked:
        return PostedReplies()
    return review.answer_threads(build_report(values), log, forge, prepared.redactor)


def _commit_builder(
    values: StageValues, prepared: PreparedRun, executed: ExecutedRun, forge: GitHubForge | None
) -> "commit_builder.CommitBuilder":
    """Return the builder of the run's commits."""
    request, log = prepared.request, values.log
    return commit_builder.CommitBuilder(
        commit_builder.PublishRequest(
            run=request.run,
            trigger=request.trigger,
            task=prepared.task,
            patch=executed.patch,
            settings=prepared.settings,
            committed_at=log.ended_at if log else request.trigger.at,
            credential=prepared.credential,
            before_push=request.control.raise_if_stopped,
            report=build_report(replace(values, executed=executed)),
            continuation=request.continuation,
            log=log,
        ),
        forge,
        prepared.workspace,
    )


def _exit_code(values: StageValues) -> int:
    """Return the exit code for the run's values: 0 done, 1 failed, 3 nothing changed, 4 a limit was
    reached or a person has to answer."""
    prepared, executed = values.prepared, values.executed
    if prepared is None or executed is None:
        return 0  # an earlier run has published the work
    if prepared.update != "agent":
        return 0  # also if the branch had all commits already: that is what was asked for
    match values.publication.how:
        case "unchanged":
            return 3
        case "patch":
            return 1
    match executed.outcome.state:
        case RunState.FINISHED | RunState.REJECTED:
            empty = executed.patch.is_empty and not is_merge(prepared)
            return 3 if empty and not is_answer_run(values) else 0
        case RunState.LIMIT | RunState.AWAITING_USER_INPUT | RunState.AWAITING_CONFIRMATION:
            return 4
        case _:
            return 1


def _check_policy(prepared: PreparedRun, executed: ExecutedRun) -> None:
    """Raise PolicyViolation if the change must not be made public.

    This gate is deterministic and the last one before anything is pushed.
    """
    if executed.files_with_secrets:
        raise PolicyViolation(
            "the change contains a secret of this run, in "
            f"{', '.join(executed.files_with_secrets[:10])}, so it was not published",
            "rotate the secret, and check the event log for how it got there",
        )
    pull = prepared.workspace.pull
    resolved = (
        update_branch.resolved_paths(executed.outcome, executed.patch, prepared.workspace.git, pull)
        if pull and pull.conflicts
        else ()
    )
    enforce_policy(
        prepared.workspace,
        executed.patch,
        prepared.settings.protected_paths,
        resolved,
    )
