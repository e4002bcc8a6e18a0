"""The straight line, from a trigger to a publication. No step reaches back.

A step that fails leaves a clear word on the issue, the patch as far as there is one, and the event
log. `resolve` is the one door: it never raises.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from resolver import work
from resolver.assembly import Host, model_name, recording_of, repository_settings
from resolver.controller.outcome import outcome_of
from resolver.errors import BranchTaken, ForgeError, PolicyViolation, ResolverError, Stopped
from resolver.events.stream import Clock, Subscriber, utc_now
from resolver.forge.base import Forge
from resolver.forge.report import Failure, Report, failure_of
from resolver.forge.wording import TRACE_ROOM, pull_request_body, pull_request_title
from resolver.model import (
    Evidence,
    Outcome,
    Patch,
    Publication,
    PullRequest,
    RunState,
    Task,
    Trigger,
    TriggerKind,
)
from resolver.output import Output
from resolver.runlog import RunLog
from resolver.security.redaction import Redactor
from resolver.settings import REPOSITORY_FILE, Settings
from resolver.summary import outcome_json
from resolver.templates import render
from resolver.trace.markdown import render_comment_trace
from resolver.triggers.permission import authorize
from resolver.verify.claims import claimed_evidence
from resolver.workspace.git import Credential
from resolver.workspace.naming import branch_name, free_branch
from resolver.workspace.policy import PatchPolicy, check
from resolver.workspace.publish import Identity
from resolver.workspace.secrecy import withhold_secrets
from resolver.workspace.workspace import Workspace

logger = logging.getLogger("resolver.pipeline")

KNOWN_IDS = {"github-actions[bot]": 41898282}
"""The account that an Action's own token writes as; it may not ask for its number."""

BRANCH_ATTEMPTS = 5
"""How often another name is tried when somebody takes the branch at the same moment."""


@dataclass(frozen=True)
class Job:
    """One delivery to work on.

    load: settings, given the parsed `.github/resolver.yml` of the target's default branch.
    publish: False does everything but push, open and comment.
    """

    trigger: Trigger
    run: str
    output: Output
    load: Callable[[dict[str, object]], Settings]
    host: Host
    publish: bool = True
    progress: Subscriber | None = None
    log_url: str = ""
    now: Clock = utc_now


@dataclass
class Record:
    """What is known of a run so far. The report is read off it, however the run ends."""

    job: Job
    settings: Settings
    task: Task | None = None
    base: str | None = None
    outcome: Outcome | None = None
    patch: Patch | None = None
    leaking: tuple[str, ...] = ()
    """Files of the change that hold a secret of ours."""
    evidence: Evidence = field(default_factory=Evidence)
    publication: Publication = field(default_factory=Publication)
    failure: Failure | None = None
    exit_code: int = 0
    warnings: list[str] = field(default_factory=list)
    log: RunLog | None = None

    def report(self) -> Report:
        """Everything that is told about the run."""
        trace = render_comment_trace(self.log.state.events, TRACE_ROOM) if self.log else ""
        return Report(
            trigger=self.job.trigger,
            run=self.job.run,
            model=model_name(self.settings),
            mention=self.settings.mention,
            task=self.task,
            outcome=self.outcome,
            patch=self.patch,
            evidence=self.evidence,
            branch=self.publication.branch,
            pull_request=self.publication.pull_request,
            failure=self.failure,
            draft=self.settings.draft or not (self.outcome and self.outcome.task_completed),
            warnings=tuple(self.warnings),
            trace_markdown=trace,
            log_url=self.job.log_url,
        )

    def fail(self, failure: Failure, exit_code: int) -> None:
        """Note the first failure. Its words may quote anything, so they lose every secret."""
        if self.failure is None:
            clean = _redactor(self).redact_text
            what, next_step = clean(failure.what), clean(failure.next_step)
            self.failure = failure.model_copy(update={"what": what, "next_step": next_step})
        self.exit_code = self.exit_code or exit_code

    def summary(self) -> dict[str, Any]:
        """What outcome.json says."""
        return outcome_json(
            run=self.job.run,
            trigger=self.job.trigger,
            model=model_name(self.settings),
            base=self.base,
            outcome=self.outcome,
            patch=self.patch,
            publication=self.publication,
            evidence=self.evidence,
            failure=self.failure,
            exit_code=self.exit_code,
            divergences=self.log.state.divergences if self.log else [],
        )


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
    record.task = task = _redactor(record).redact_model(forge.read(job.trigger))
    with TemporaryDirectory(prefix="resolver-") as folder:
        workspace = _clone(record, task, Path(folder) / "clone.git")
        task = record.task
        _work(record, task, workspace, Path(folder))
        record.exit_code = _exit_code(record)
        if record.exit_code == 0:
            _check(record, workspace)
            _publish(record, forge, task, workspace)


def _clone(record: Record, task: Task, folder: Path) -> Workspace:
    """The host's own clone; the repository's settings are read from it."""
    started = time.monotonic()
    workspace = Workspace.clone(
        task.source,
        folder,
        branch=task.base_branch or None,
        depth=record.settings.clone_depth,
        credential=_credential(record),
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
    redactor = _redactor(record)
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


def _publish(record: Record, forge: Forge, task: Task, workspace: Workspace) -> None:
    """Commit, push, open. Each part finds what an earlier attempt has already done."""
    job = record.job
    assert record.patch is not None
    report = record.report()
    title = pull_request_title(report)
    if not job.publish:
        body = pull_request_body(report)
        record.publication = Publication(pull_request=PullRequest(title=title, body=body))
        return
    started = time.monotonic()
    patch = workspace.commit(
        record.patch,
        message=render("run/commit.j2", title=title, task=task, run=job.run),
        author=_identity(forge.whoami(), None),
        at=job.now(),
        co_authors=_co_authors(job.trigger),
    )
    assert patch.commit is not None
    branch = _push(record, forge, task, workspace, patch.commit)
    record.patch = patch
    record.publication = Publication(branch=branch, commit=patch.commit)
    pull_request = forge.open_pull_request(record.report(), branch)
    record.publication = record.publication.model_copy(update={"pull_request": pull_request})
    if record.log:
        record.log.stage("published", pull_request.url or branch, time.monotonic() - started)


def _push(record: Record, forge: Forge, task: Task, workspace: Workspace, commit: str) -> str:
    """Publish the commit under a free branch name; the name."""
    trigger = record.job.trigger
    wanted = branch_name(task.title)
    forge.discard_abandoned(wanted, record.job.run)
    taken = forge.branches(wanted)
    for _ in range(BRANCH_ATTEMPTS):
        branch = free_branch(taken, wanted)
        try:
            if trigger.kind is TriggerKind.LOCAL:
                workspace.write_branch(Path(task.source), branch, commit)
            else:
                workspace.push(commit, branch, task.source, _credential(record))
        except BranchTaken:
            taken = {*taken, branch}
        else:
            return branch
    raise ForgeError(f"no free branch name like {wanted} was found", "delete old agent/ branches")


def _redactor(record: Record) -> Redactor:
    """Knows every secret of the settings and of the machine's environment."""
    return Redactor((*record.settings.secrets, *record.job.host.secrets))


def _credential(record: Record) -> Credential | None:
    token = record.settings.github_token
    if record.job.trigger.kind is TriggerKind.LOCAL or token is None:
        return None
    return Credential(record.settings.github_server_url, token.get_secret_value())


def _identity(login: str, id: int | None) -> Identity:
    """How a commit names an account, so that GitHub links it."""
    login = login or "resolver"
    id = id or KNOWN_IDS.get(login)
    user = f"{id}+{login}" if id is not None else login
    return Identity(login, f"{user}@users.noreply.github.com")


def _co_authors(trigger: Trigger) -> tuple[Identity, ...]:
    """The person who asked, where the forge knows them."""
    if trigger.kind in {TriggerKind.LOCAL, TriggerKind.COMMAND_LINE}:
        return ()
    return (_identity(trigger.actor.login, trigger.actor.id),)


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
