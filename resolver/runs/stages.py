"""The values that the stages of a run return, from its request to its result.

    RunRequest -> AcceptedRun -> RunTask, PreparedRun -> ExecutedRun -> Verification
      -> PublishedRun, PostedReplies -> RunResult

The stages are listed in `resolver.runs.pipeline`. Each value is frozen and built once.
`StageValues` collects those that a run has reached, so that a failed run is described by exactly
what it knew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from resolver.agents.definitions import Definitions
from resolver.config.settings import Settings
from resolver.controller.control import Control
from resolver.errors import Cause, ResolverError, RunStopped
from resolver.events.run_log import RunLog
from resolver.events.stores import LogCopy
from resolver.events.stream import Clock, SteadyClock, Subscriber
from resolver.git.git import Credential
from resolver.git.workspace import Workspace
from resolver.github.client.snapshot import RepositorySnapshot
from resolver.github.comments.progress import ProgressReporter
from resolver.github.comments.report import Report, RunFailure
from resolver.github.events.quota_decision import QuotaUse
from resolver.github.events.quota_ledger import LedgerRun, LedgerVersion
from resolver.memory.skills.library import Library
from resolver.models.pull_request import PostedReplies
from resolver.models.repository import Conventions
from resolver.models.run import (
    CheckedCommand,
    Continuation,
    ExportedChange,
    Outcome,
    Patch,
    Publication,
    Task,
    Trigger,
    TriggerKind,
)
from resolver.models.verification import Verification
from resolver.runs.outcome_file import OutcomeFile
from resolver.runs.output import Output
from resolver.runs.wiring.sandbox import RunHost
from resolver.security.redaction import Redactor

if TYPE_CHECKING:
    from resolver.storage.quota_table import QuotaTable


@dataclass(frozen=True)
class RunRequest:
    """A request for a run, as an entry point has parsed it from an event.

    load_settings: returns the settings, given the parsed `.github/resolver.yml` of the target's
        default branch.
    by_operator: True if the operator of this machine publishes a kept change. The result is then
        published even if the request was taken back.
    publish: False for a dry run, which does everything except push, open pull requests and comment.
    resume: True if the output folder holds the log of this same run, which was interrupted. Without
        an event in the log the run starts from the beginning.
    limit_overrides: fields of `RunLimits` that a person has changed for a resumed run.
    issue: path of the issue's file, for a local checkout.
    options: settings given on the command line, stored for the process that resumes the run.
    source: clone URL or path that replaces the one in the log.
    continuation: the earlier run that this one continues. The output folder begins with its log.
    control: queue of people's requests to the running run.
    archives_log: True if the caller archives the log in the repository, see `RunResult.archived`.
    can_be_continued: True if the log is kept where it is found by a later comment to continue the
        run.
    notices: facts about how the run was started, shown as warnings.
    ended_by: the error or the stop that ends the run before its work; None to execute it.
    retry_until: time until which a run that ends with an outage is repeated; None if it is not.
    budget: US dollars that the run may spend, if that is less than its settings say.
    quota_table: where a server counts runs and their cost; None for the repository itself.
    log_url: page of the log, for links in comments.
    page: page that shows the run while it is active and afterwards, without its files.
    actions_run: the GitHub Actions run that this run is part of, in the form of
        `ActiveRunMarker.job`; None outside of Actions.
    traceparent: ids of the run's OpenTelemetry trace; None if no spans are exported. Set by
        `run_pipeline`.
    observe: is called with all values that are known after each stage. It raises nothing.
    log_copy: gets each line of the event log too; None to keep only the file.
    """

    trigger: Trigger
    run: str
    output: Output
    load_settings: Callable[[dict[str, object]], Settings]
    host: RunHost
    publish: bool = True
    by_operator: bool = False
    resume: bool = False
    limit_overrides: Mapping[str, float] = field(default_factory=dict)
    issue: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None
    continuation: Continuation | None = None
    control: Control = field(default_factory=Control)
    archives_log: bool = False
    can_be_continued: bool = False
    notices: tuple[str, ...] = ()
    ended_by: ResolverError | RunStopped | None = None
    retry_until: datetime | None = None
    budget: float = float("inf")
    quota_table: "QuotaTable | None" = None
    progress: Subscriber | None = None
    traceparent: str | None = None
    observe: Callable[["StageValues"], None] = lambda _: None
    log_copy: LogCopy | None = None
    log_url: str | None = None
    page: str | None = None
    actions_run: str | None = None
    now: Clock = field(default_factory=SteadyClock)

    @property
    def is_local(self) -> bool:
        """True for a checkout on this machine, where nobody reads comments."""
        return self.trigger.kind is TriggerKind.LOCAL

    @property
    def has_log(self) -> bool:
        """True if the output folder holds a log that the run is resumed from."""
        return (self.resume or self.continuation is not None) and self.output.has_events

    def redactor(self, settings: Settings) -> Redactor:
        """Return a redactor of all secrets in the settings and in the machine's environment."""
        return self.host.redactor(settings)

    def credential(self, settings: Settings) -> Credential | None:
        """Return the credential for git on the host; None for a local checkout.

        Do not store it: its token may expire. Raises ForgeError.
        """
        if self.is_local:
            return None
        return self.host.tokens.credential(settings, self.trigger.repository)


@dataclass(frozen=True)
class AcceptedRun:
    """A request that may start work: its requester is authorized and its quotas are not exhausted.

    reservation: the run's entry in the quota ledger; None if it has none.
    quota_left: US dollars that the daily quotas leave to the run.
    ledger: the ledger with the reservation, as this run wrote it.
    snapshot: the repository's refs at the time of the decision; None if they were not read.
    """

    reservation: LedgerRun | None = None
    quota_left: float = float("inf")
    ledger: LedgerVersion | None = None
    snapshot: RepositorySnapshot | None = None


@dataclass(frozen=True)
class RunTask:
    """The task, as the requester saw it or as the resumed log states it.

    request: the request, with the trigger that stands for all events of a submitted review.
    log: the log of a resumed run; None for a new run.
    base: the commit that the resumed log started from.
    """

    request: RunRequest
    task: Task
    log: RunLog | None = None
    base: str | None = None


@dataclass(frozen=True)
class PreparedRun:
    """Everything that the agent's work needs.

    settings: the operator's and the repository's, with the name of the agent that does the work.
    base_committed_at: commit date of the base; None for a pull request, whose head the requester
        saw.
    agents: the agents that the repository defines.
    max_cost: US dollars that all attempts in the log may cost together; no comment can raise it.
    update: how a pull request is brought up to date; "agent" for every other kind of work.
    """

    request: RunRequest
    settings: Settings
    task: Task
    workspace: Workspace
    base_committed_at: datetime | None
    conventions: Conventions
    agents: Definitions
    library: Library
    max_cost: float
    update: Literal["agent", "up_to_date", "clean_merge"] = "agent"
    warnings: tuple[str, ...] = ()

    @property
    def redactor(self) -> Redactor:
        """A redactor of every secret that the run knows."""
        return self.request.redactor(self.settings)

    def credential(self) -> Credential | None:
        """Return the current credential for git on the host. Raises ForgeError."""
        return self.request.credential(self.settings)


@dataclass(frozen=True)
class ExecutedRun:
    """The result of the agent's work, and the change that was taken out of the sandbox.

    change: the exported git objects; None if no sandbox was needed.
    files_with_secrets: files of the change that contain a secret known to the run.
    """

    outcome: Outcome
    patch: Patch
    commands: tuple[CheckedCommand, ...] = ()
    change: ExportedChange | None = None
    files_with_secrets: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublishedRun:
    """The part of the run's work that is public so far. A later value replaces an earlier one."""

    publication: Publication
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class StageValues:
    """The values of the stages that a run has reached; None for those that it has not.

    settings: the operator's. log: the event log of the agent's work, as soon as it is open.
    interrupted: state of the agent's work when the run failed.
    """

    request: RunRequest
    settings: Settings
    accepted: AcceptedRun | None = None
    progress: ProgressReporter | None = None
    run_task: RunTask | None = None
    prepared: PreparedRun | None = None
    log: RunLog | None = None
    executed: ExecutedRun | None = None
    verification: Verification | None = None
    published: PublishedRun | None = None
    replies: PostedReplies = field(default_factory=PostedReplies)
    interrupted: Outcome | None = None

    @property
    def current_request(self) -> RunRequest:
        """The request; as soon as it is known, with the trigger that stands for all its events."""
        return self.run_task.request if self.run_task else self.request

    @property
    def current_settings(self) -> Settings:
        """The repository's settings as soon as they are known, until then the operator's."""
        return self.prepared.settings if self.prepared else self.settings

    @property
    def task(self) -> Task | None:
        """The task, as far as it is known."""
        newest = self.prepared or self.run_task
        return newest.task if newest else None

    @property
    def base(self) -> str | None:
        """The commit that the work starts from."""
        if self.prepared is not None:
            return self.prepared.workspace.base
        return self.run_task.base if self.run_task else None

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the agent's work."""
        return self.executed.outcome if self.executed else self.interrupted

    @property
    def publication(self) -> Publication:
        """The part of the run's work that is public."""
        publication = self.published.publication if self.published else Publication()
        if self.replies.comment_url is None:
            return publication
        return publication.model_copy(update={"comment_url": self.replies.comment_url})

    @property
    def patch(self) -> Patch | None:
        """The change, with the id of the commit that it was published as."""
        if self.executed is None:
            return None
        commit = self.publication.commit
        patch = self.executed.patch
        return patch.model_copy(update={"commit": commit}) if commit else patch

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all stages for the reader, in the order of the stages."""
        parts = (self.prepared, self.executed, self.published, self.replies)
        return tuple(warning for part in parts if part is not None for warning in part.warnings)

    def redact(self, failure: RunFailure) -> RunFailure:
        """Return the failure without secrets. Its text may quote anything, for example a remote's
        reply."""
        clean = self.current_request.redactor(self.current_settings).redact_text
        what, next_step = clean(failure.what), failure.next_step and clean(failure.next_step)
        return failure.model_copy(update={"what": what, "next_step": next_step})


@dataclass(frozen=True)
class RunResult:
    """The result of a run, as read by the command line, the Action, the server and outcome.json.

    report: the report that the final comment was rendered from.
    log: closed, its state remains readable.
    comment_failed: True if the final comment should have been written and could not be.
    outage: cause of the outage that ended the run or prevented its final comment; None for none.
    archived: True if the log was archived in the repository together with the run's cost.
    quota_use: what today's runs have used of the quotas; empty if that is not known.
    """

    request: RunRequest
    report: Report
    outcome_file: OutcomeFile
    publication: Publication
    exit_code: int
    outcome: Outcome | None = None
    failure: RunFailure | None = None
    log: RunLog | None = None
    comment_failed: bool = False
    outage: Cause | None = None
    archived: bool = False
    quota_use: tuple[QuotaUse, ...] = ()
