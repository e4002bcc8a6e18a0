"""The straight line, from a trigger to a publication. No step reaches back.

A step that fails leaves a clear word on the issue, the patch as far as there is one, and the event
log. `resolve` is the one door: it never raises.
"""

import logging
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from resolver import work
from resolver.assembly import recording_of, repository_settings
from resolver.controller.outcome import outcome_of
from resolver.errors import PolicyViolation, ResolverError, Stopped
from resolver.forge.base import Forge
from resolver.forge.report import Failure, failure_of
from resolver.model import (
    RunState,
    Task,
    TriggerKind,
)
from resolver.publishing import publish
from resolver.record import Job, Record
from resolver.runlog import RunLog
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
    """Whether an earlier run of this key has published; what it left untold is told now."""
    job = record.job
    earlier = forge.find_publication(job.trigger) if job.publish else None
    if earlier is None:
        return False
    record.publication = earlier
    return True


def _travel(record: Record, forge: Forge) -> None:
    """The line itself."""
    job = record.job
    authorize(job.trigger, forge, record.settings.allowed_users)
    if job.publish:
        forge.acknowledge(job.trigger)
    record.task = task = record.redactor().redact_model(forge.read(job.trigger))
    with TemporaryDirectory(prefix="resolver-") as folder:
        workspace = _clone(record, task, Path(folder) / "clone.git")
        task = record.task
        _work(record, task, workspace, Path(folder))
        record.exit_code = _exit_code(record)
        if record.exit_code == 0:
            _check(record, workspace)
            publish(record, forge, task, workspace)


def _clone(record: Record, task: Task, folder: Path) -> Workspace:
    """The host's own clone; the repository's settings are read from it."""
    started = time.monotonic()
    workspace = Workspace.clone(
        task.source,
        folder,
        branch=task.base_branch or None,
        depth=record.settings.clone_depth,
        credential=record.credential(),
    )
    record.base = workspace.base
    record.task = task.model_copy(update={"base_branch": workspace.branch})
    record.settings = record.job.load(repository_settings(workspace.read(REPOSITORY_FILE)))
    if workspace.source_is_dirty:
        record.warnings.append(render("run/dirty.md.j2").strip())
    logger.info("cloned %s in %.1f s", task.source, time.monotonic() - started)
    return workspace


def _work(record: Record, task: Task, workspace: Workspace, folder: Path) -> None:
    job = record.job
    recording = recording_of(record.settings)
    redactor = record.redactor()
    record.log = RunLog(job.output.log, redactor, job.now)
    if job.progress:
        record.log.stream.subscribe("progress", job.progress)
    worked = work.work(
        work.Job(job.run, task, record.settings, recording, job.host, folder, job.now),
        workspace,
        record.log,
    )
    record.outcome = worked.outcome
    record.patch, record.leaking = withhold_secrets(
        workspace, worked.patch, redactor, record.settings.max_patch_bytes
    )
    record.evidence = claimed_evidence(worked.commands)
    divergences = record.log.state.divergences
    if divergences:
        record.warnings.append(render("run/diverged.md.j2", divergences=divergences).strip())


def _exit_code(record: Record) -> int:
    """What the agent's end means for the command line."""
    assert record.outcome is not None
    assert record.patch is not None
    match record.outcome.state:
        case RunState.FINISHED:
            return 3 if record.patch.is_empty else 0
        case RunState.REJECTED:
            return 3
        case RunState.LIMIT:
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
