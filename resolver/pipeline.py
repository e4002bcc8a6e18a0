"""The straight line, from a trigger to a publication. No step reaches back.

A step that fails leaves a clear word on the issue, the patch as far as there is one, and the event
log. `resolve` is the one door: it never raises.
"""

import logging
import time
from pathlib import Path

from resolver import work
from resolver.agents.readonly import READ_ONLY
from resolver.assembly import recording_of, repository_settings
from resolver.controller.outcome import outcome_of
from resolver.errors import PolicyViolation, ResolverError, Stopped, WorkspaceError
from resolver.forge.base import Forge
from resolver.forge.places import with_links
from resolver.forge.report import Failure, failure_of
from resolver.model import (
    Command,
    Outcome,
    Patch,
    RunState,
    Task,
    TriggerKind,
)
from resolver.output import Request
from resolver.publishing import publish
from resolver.record import Job, Record
from resolver.resume import change_limits, go_on, take_up
from resolver.runlog import RunLog
from resolver.scratch import scratch_folder
from resolver.settings import REPOSITORY_FILE
from resolver.templates import render
from resolver.triggers.permission import authorize
from resolver.verify.claims import claimed_evidence
from resolver.workspace.policy import PatchPolicy, check
from resolver.workspace.secrecy import withhold_secrets
from resolver.workspace.workspace import Workspace

logger = logging.getLogger("resolver.pipeline")


def resolve(job: Job, forge: Forge) -> Record:
    """Do one delivery from end to end. Never raises; the record says how it ended."""
    record = Record(job, job.load({}))
    try:
        if not _done_before(record, forge):
            _travel(record, forge)
    except (ResolverError, Stopped) as error:
        record.fail(failure_of(error), error.exit_code)
    except Exception as error:
        logger.exception("run %s failed", job.run)
        record.fail(Failure(kind="error", what=f"a fault of Resolver itself: {error!r}"), 1)
    if record.outcome is None and record.log is not None:
        record.outcome = outcome_of(record.log.state)
    _tell(record, forge)
    _write(record)
    return record


def _done_before(record: Record, forge: Forge) -> bool:
    """Whether an earlier run of this key has published; what it left untold is told now.

    A run that is resumed has its log to tell more of, and publishes only what is not there.
    """
    job = record.job
    earlier = forge.find_publication(job.trigger) if job.publish else None
    if earlier is None:
        return False
    resumes = job.resume and job.output.has_events
    record.publication = earlier.model_copy(update={"repeated": not resumes})
    return not resumes


def _travel(record: Record, forge: Forge) -> None:
    """The line itself."""
    job = record.job
    job.output.write_request(
        record.redactor().redact_model(
            Request(
                run=job.run,
                trigger=job.trigger,
                publish=job.publish,
                issue=job.issue,
                continuation=job.continuation,
                source=job.source,
            )
        )
    )
    authorize(job.trigger, forge, record.settings.allowed_users)
    task = _task(record, forge)
    with scratch_folder() as folder:
        workspace = _clone(record, task, folder / "clone.git")
        assert record.task is not None
        task = record.task
        _work(record, task, workspace, folder)
        record.exit_code = _exit_code(record)
        if record.answers:
            return
        if record.exit_code == 0 and record.publication.pull_request is None:
            _check(record, workspace)
            publish(record, forge, task, workspace)


def _task(record: Record, forge: Forge) -> Task:
    """What is to be done: as the log says where there is one to go on from, else as the forge."""
    job = record.job
    if job.publish:
        forge.acknowledge(job.trigger)
    if (job.resume or job.continuation) and job.output.has_events:
        record.log = log = _open_log(record)
        opening = log.opening
        assert opening is not None
        take_up(log, job.run, job.continuation)
        job.output.withdraw_outcome()
        record.base = opening.base
        source = job.source or opening.task.source
        record.task = opening.task.model_copy(update={"source": source})
        return record.task
    record.task = record.redactor().redact_model(forge.read(job.trigger))
    return record.task


def _open_log(record: Record) -> RunLog:
    job = record.job
    log = RunLog(job.output.log, record.redactor(), job.now)
    if job.progress:
        log.stream.subscribe("progress", job.progress)
    return log


def _clone(record: Record, task: Task, folder: Path) -> Workspace:
    """The host's own clone; the repository's settings are read from it."""
    started = time.monotonic()
    workspace = Workspace.clone(
        task.source,
        folder,
        branch=task.base_branch or None,
        commit=record.base,
        depth=record.settings.clone_depth,
        credential=record.credential(),
    )
    record.base = workspace.base
    record.task = task.model_copy(update={"base_branch": workspace.branch})
    record.settings = record.job.load(repository_settings(workspace.read(REPOSITORY_FILE)))
    if record.job.trigger.command is Command.QUESTION:
        record.settings = record.settings.model_copy(update={"agent": READ_ONLY})
    if workspace.source_is_dirty:
        record.warnings.append(render("run/dirty.md.j2").strip())
    logger.info("cloned %s in %.1f s", task.source, time.monotonic() - started)
    return workspace


def _work(record: Record, task: Task, workspace: Workspace, folder: Path) -> None:
    job = record.job
    settings = record.settings
    recording = recording_of(settings)
    redactor = record.redactor()
    if record.log is None:
        record.log = _open_log(record)
    else:
        change_limits(record.log, job.bounds)
        go_on(record.log, job.run, job.continuation, settings.ceiling)
    worked = work.work(
        work.Job(job.run, task, settings, recording, job.host, folder, job.now, job.control),
        workspace,
        record.log,
    )
    record.outcome = worked.outcome
    change = worked.patch
    if record.answers:
        record.outcome = _with_links(record, workspace, worked.outcome)
        change = Patch(base=workspace.base, tree=workspace.tree(workspace.base))
    record.patch, record.leaking = withhold_secrets(
        workspace, change, redactor, settings.max_patch_bytes
    )
    record.evidence = claimed_evidence(worked.commands)
    record.warnings.extend(worked.warnings)
    if worked.left_out and not record.answers:
        record.warnings.append(render("run/left_out.md.j2", paths=worked.left_out).strip())
    divergences = record.log.state.divergences
    if divergences:
        words = "run/diverged.md.j2" if recording else "run/rebuilt.md.j2"
        record.warnings.append(render(words, divergences=divergences).strip())


def _with_links(record: Record, workspace: Workspace, outcome: Outcome) -> Outcome:
    """The answer with links to the lines it names, where the forge has pages for them."""

    def lines_of(path: str) -> int | None:
        try:
            content = workspace.read(path)
        except WorkspaceError:
            return None  # too large to be shown with line numbers
        return None if content is None else len(content.splitlines())

    reason = outcome.reason or ("answered" if outcome.state is RunState.FINISHED else "")
    message = outcome.message
    trigger = record.job.trigger
    if trigger.kind is not TriggerKind.LOCAL:
        server = record.settings.github_server_url.rstrip("/")
        page = f"{server}/{trigger.repository}/blob/{workspace.base}"
        message = with_links(message, page, lines_of)
    return outcome.model_copy(update={"message": message, "reason": reason})


def _exit_code(record: Record) -> int:
    """What the agent's end means for the command line."""
    assert record.outcome is not None
    assert record.patch is not None
    match record.outcome.state:
        case RunState.FINISHED:
            return 3 if record.patch.is_empty and not record.answers else 0
        case RunState.REJECTED:
            return 3
        case RunState.LIMIT | RunState.AWAITING_USER_INPUT:
            return 4
        case _:
            return 1


def _check(record: Record, workspace: Workspace) -> None:
    """The deterministic gate before anything is made public. Raises PolicyViolation."""
    assert record.patch is not None
    settings = record.settings
    if record.leaking:
        raise PolicyViolation(
            f"the change holds a secret of this run, in {', '.join(record.leaking[:10])}, "
            "so it was not published",
            "rotate the secret, and look in the event log for how it got there",
        )
    policy = PatchPolicy(
        protected_paths=settings.protected_paths,
        max_bytes=settings.max_patch_bytes,
        max_files=settings.max_patch_files,
    )
    check(workspace, record.patch, policy)


def _tell(record: Record, forge: Forge) -> None:
    """One comment that says how it ended. Failing to tell is itself a failure of the run."""
    if not record.job.publish or record.publication.comment_url is not None:
        return
    if record.job.trigger.kind is TriggerKind.COMMAND_LINE and record.exit_code in {2, 5}:
        return  # the person at the terminal is told there, and nobody else asked
    try:
        url = forge.comment(record.report())
    except (ResolverError, Stopped) as error:
        logger.error("run %s could not be told: %s", record.job.run, error.what)
        record.fail(failure_of(error), error.exit_code)
        return
    record.publication = record.publication.model_copy(update={"comment_url": url or None})


def _write(record: Record) -> None:
    """The output folder, whatever happened; outcome.json last."""
    output = record.job.output
    if record.log is not None:
        output.write_patch(record.patch.diff if record.patch else b"")
    if record.publication.pull_request is not None:
        output.write_pull_request(record.publication.pull_request)
    if record.log is not None:
        output.write_traces(record.log.state.events)
        record.log.close()
    output.write_outcome(record.summary())
    output.close()
