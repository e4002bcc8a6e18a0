"""The straight line, from a trigger to a publication. No step reaches back.

A step that fails leaves a clear word on the issue, the patch as far as there is one, and the event
log. `resolve` is the one door: it never raises.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from resolver import work
from resolver.assembly.agents import denied_models
from resolver.assembly.knowledge import note_store
from resolver.assembly.models import preload_models, recording_of
from resolver.controller.outcome import outcome_of
from resolver.errors import NotAllowed, PolicyViolation, ResolverError, Stopped
from resolver.events.actions import Delegate
from resolver.events.lifecycle import roots_of
from resolver.forge.base import Forge
from resolver.forge.report import Failure, failure_of
from resolver.guards.admission import admit, settle
from resolver.guards.stopping import heeding_stops
from resolver.memory.notes import notes_of
from resolver.model import (
    ExportedChange,
    Outcome,
    Patch,
    Publication,
    RunState,
    Task,
    TriggerKind,
)
from resolver.output import Request
from resolver.preparing import (
    clone,
    cut_budget,
    read_repository,
    read_round,
    start_elsewhere,
)
from resolver.publishing.change import publish
from resolver.publishing.checks import told_of_checks
from resolver.publishing.links import linker
from resolver.publishing.making import policy_of
from resolver.publishing.notes import NOTES_FILE, told_of_change, told_of_notes
from resolver.publishing.review import publish_review, with_remarks
from resolver.publishing.threads import answer_threads
from resolver.publishing.updating import begin_on_pull, settled_paths
from resolver.record import Job, Record
from resolver.resuming.resume import change_limits, decide, go_on, take_up
from resolver.runlog import RunLog
from resolver.scratch import scratch_folder
from resolver.settings import Settings
from resolver.templates import render
from resolver.thread.asking import waiting
from resolver.thread.beginning import begin_telling, show
from resolver.thread.ending import failure_of_machine, tell, write
from resolver.triggers.permission import authorize
from resolver.verify.claims import claimed_evidence
from resolver.verify.tried import tried
from resolver.workspace.naming import branches_of_issue
from resolver.workspace.policy import check, is_protected
from resolver.workspace.secrecy import withhold_secrets
from resolver.workspace.workspace import Workspace

logger = logging.getLogger("resolver.pipeline")

Preload = Callable[[Settings], None]
"""Starts to load what the settings' model needs."""


def resolve(job: Job, forge: Forge, preload: Preload = preload_models) -> Record:
    """Do one delivery from end to end. Never raises; the record says how it ended.

    preload: called once it is known that the run may start; it must not wait.
    """
    record = Record(job, job.load({}))
    try:
        if not _done_before(record, forge):
            _travel(record, forge, preload)
    except (ResolverError, Stopped) as error:
        record.fail(failure_of(error), error.exit_code)
    except OSError as error:
        logger.exception("run %s failed", job.run)
        record.fail(failure_of_machine(error), 1)
    except Exception as error:
        logger.exception("run %s failed", job.run)
        record.fail(Failure(kind="error", what=f"a fault of Resolver itself: {error!r}"), 1)
    if record.outcome is None and record.log is not None:
        record.outcome = outcome_of(record.log.state)
    tell(record, forge)
    settle(record, forge)
    write(record)
    return record


def _done_before(record: Record, forge: Forge) -> bool:
    """Whether an earlier run of this key has published; what it left untold is told now."""
    if not record.job.publish:
        return False
    earlier = forge.find_publication(record.job.trigger)
    return earlier is not None and _repeats(record, earlier)


def _pushed_before(record: Record, forge: Forge) -> bool:
    """Whether an earlier attempt of this run has pushed, where none has told of anything. It takes
    some asking, which nobody but those who may start work can make us do."""
    job = record.job
    if not job.publish or record.publication != Publication():
        return False
    prefix = branches_of_issue(job.trigger.subject or 0)
    earlier = forge.heads().pushed(job.trigger, job.run, prefix)
    return earlier is not None and _repeats(record, earlier)


def _repeats(record: Record, earlier: Publication) -> bool:
    """Whether there is no more to do than to tell of it. A run that is resumed has its log to tell
    more of, and publishes only what is not there."""
    job = record.job
    resumes = job.resume and job.output.has_events
    if resumes and earlier.how == "added":
        return False  # a commit of its own is found again where it is added
    record.publication = earlier.model_copy(update={"repeated": not resumes})
    in_review = job.trigger.kind is TriggerKind.REVIEW_COMMENT or job.trigger.review_id is not None
    if in_review and not resumes and earlier.comment_url is None:
        record.warnings.append(render("run/answers_lost.md.j2").strip())
    return not resumes


def _travel(record: Record, forge: Forge, preload: Preload) -> None:
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
    _authorize(record, forge)
    preload(record.settings)
    if _pushed_before(record, forge):
        return
    admit(record, forge)
    task = _task(record, forge)
    show(record, read=True)
    with scratch_folder() as folder, heeding_stops(record, forge):
        workspace = clone(record, task, folder / "clone.git")
        show(record, base=workspace.base)
        read_repository(record, forge, workspace, folder)
        workspace = start_elsewhere(record, forge, workspace)
        cut_budget(record)
        begun = begin_on_pull(record, forge, workspace)
        if begun is None:
            return
        assert record.task is not None
        workspace, task = begun, record.task
        _work(record, forge, task, workspace, folder)
        record.exit_code = _exit_code(record)
        if record.exit_code == 0 and record.reviews:
            publish_review(record, forge, workspace)
        if record.answers:
            answer_threads(record, forge)
            return
        if record.exit_code == 0 and record.publication.pull_request is None:
            _check(record, workspace)
            publish(record, forge, task, workspace)
            told_of_checks(record, forge)
        answer_threads(record, forge)


def _authorize(record: Record, forge: Forge) -> None:
    """Raises NotAllowed, of which the thread hears nothing where the operator wants it so."""
    try:
        authorize(record.job.trigger, forge, record.settings.who_may)
    except NotAllowed as refused:
        record.silent = record.settings.refusals == "silent"
        if record.silent:
            logger.warning("run %s is refused: %s", record.job.run, refused.what)
        raise


def _task(record: Record, forge: Forge) -> Task:
    """What is to be done: as the log says where there is one to go on from, else as the forge."""
    job = record.job
    begin_telling(record, forge)
    if (job.resume or job.continuation) and job.output.has_events:
        record.log = log = _open_log(record)
        opening = log.opening
        assert opening is not None
        take_up(log, job.run, job.continuation, ended=job.output.outcome is not None)
        job.output.withdraw_outcome()
        record.base = opening.base
        source = job.source or opening.task.source
        record.task = opening.task.model_copy(update={"source": source})
        if opening.task.trigger.key == job.trigger.key:
            record.job = replace(job, trigger=opening.task.trigger)
        return record.task
    record.task = record.redactor().redact_model(read_round(record, forge.read(job.trigger)))
    return record.task


def _open_log(record: Record) -> RunLog:
    job = record.job
    log = RunLog(job.output.log, record.redactor(), job.now)
    if job.progress:
        log.stream.subscribe("progress", job.progress)
    if record.telling:
        log.stream.subscribe("forge", record.telling.follow(log.state))
    return log


def _work(record: Record, forge: Forge, task: Task, workspace: Workspace, folder: Path) -> None:
    job = record.job
    settings = record.settings
    recording = recording_of(settings)
    redactor = record.redactor()
    if record.log is None:
        record.log = _open_log(record)
    else:
        change_limits(record.log, _bounds(record, record.log))
        go_on(record.log, job.run, job.continuation, record.ceiling)
        decide(record.log, job.run, job.continuation, job.control)
    kept = job.output.change if record.log.is_done else None
    if kept is None:
        job.output.withdraw_change()
    worked = work.work(
        work.Job(
            run=job.run,
            task=task,
            settings=settings,
            recording=recording,
            host=job.host,
            folder=folder,
            now=job.now,
            control=job.control,
            most=record.ceiling,
            agents=record.agents.agents,
            knowledge=record.knowledge,
            waiting=waiting(record, forge),
            change=kept,
        ),
        workspace,
        record.log,
    )
    record.outcome = worked.outcome
    change = worked.patch
    if record.answers:
        record.outcome = _with_links(record, workspace, with_remarks(record, worked.outcome))
        change = Patch(base=workspace.base, tree=workspace.tree(workspace.base))
    record.patch, record.leaking = withhold_secrets(
        workspace, change, redactor, settings.max_patch_bytes
    )
    if not (record.answers or record.leaking):
        job.output.keep_change(worked.change)
    declined = record.patch.is_empty and worked.outcome.declined != ""
    roots = roots_of(record.log.state.events if record.log else ())
    record.evidence = tried(worked.commands, roots) if declined else claimed_evidence(record.course)
    record.warnings.extend(worked.warnings)
    record.warnings.extend(_left_for_later(record, record.log))
    if not record.answers:
        record.warnings.extend(_left_out(worked.change))
    handed = (e.agent for e in record.log.state.events if isinstance(e, Delegate))
    record.warnings.extend(denied_models(record.agents, {settings.agent, *handed}))
    divergences = record.log.state.divergences
    if divergences:
        words = "run/diverged.md.j2" if recording else "run/rebuilt.md.j2"
        record.warnings.append(render(words, divergences=divergences).strip())


def _left_out(change: ExportedChange) -> Iterator[str]:
    """What a person is told of files that are not part of the change."""
    if change.left_out:
        yield render("run/left_out.md.j2", paths=change.left_out).strip()
    if change.generated:
        yield render("run/generated_left_out.md.j2", paths=change.generated).strip()


def _left_for_later(record: Record, log: RunLog) -> Iterator[str]:
    """What a person is told of the run's notes, and of a change to what agents are told."""
    job, patch, settings = record.job, record.patch, record.settings
    notes = notes_of(log.state.events)
    proposable = not is_protected(NOTES_FILE, settings.protected_paths)
    if settings.notes == "store" or (settings.notes == "propose" and not proposable):
        store = note_store(settings, job.host)
        at = log.state.last_at or job.now()
        yield from filter(None, [told_of_notes(notes, store, job.trigger.repository, job.run, at)])
    if patch is not None and not record.answers:
        yield from filter(None, [told_of_change(patch, notes)])


def _bounds(record: Record, log: RunLog) -> Mapping[str, float]:
    """The bounds that are set anew for a run that goes on."""
    budget = record.job.bounds.get("max_budget", log.state.limits.max_budget)
    cut = {"max_budget": record.most_money} if budget > record.most_money else {}
    return {**record.job.bounds, **cut}


def _with_links(record: Record, workspace: Workspace, outcome: Outcome) -> Outcome:
    """The answer with links to the lines it names, where the forge has pages for them."""
    reason = outcome.reason or ("answered" if outcome.state is RunState.FINISHED else "")
    told = render("run/places.md.j2", message=outcome.message, places=outcome.places).strip()
    message = linker(record, workspace)(told)
    return outcome.model_copy(update={"message": message, "reason": reason})


def _exit_code(record: Record) -> int:
    """What the agent's end means for the command line."""
    assert record.outcome is not None
    assert record.patch is not None
    match record.outcome.state:
        case RunState.FINISHED | RunState.REJECTED:
            empty = record.patch.is_empty and not record.merges
            return 3 if empty and not record.answers else 0
        case RunState.LIMIT | RunState.AWAITING_USER_INPUT | RunState.AWAITING_CONFIRMATION:
            return 4
        case _:
            return 1


def _check(record: Record, workspace: Workspace) -> None:
    """The deterministic gate before anything is made public. Raises PolicyViolation."""
    assert record.patch is not None
    if record.leaking:
        raise PolicyViolation(
            f"the change holds a secret of this run, in {', '.join(record.leaking[:10])}, "
            "so it was not published",
            "rotate the secret, and look in the event log for how it got there",
        )
    settled = settled_paths(record, workspace)
    check(workspace, record.patch, policy_of(record), settled)
