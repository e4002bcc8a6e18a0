"""The values that the stages of a run return, from its request to its result.

Each is frozen and built once. `StageValues` collects those that a run has reached, so that a failed
run is described by exactly what it knew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from resolver.agents.definitions import Definitions
from resolver.config.settings import Settings
from resolver.controller.control import Control
from resolver.errors import Cause
from resolver.events.run_log import RunLog
from resolver.events.stream import Clock, Subscriber, utc_now
from resolver.git.git import Credential
from resolver.git.workspace import Workspace
from resolver.github.comments.progress_reporter import ProgressReporter
from resolver.github.comments.report import Report, RunFailure
from resolver.github.events.quota_ledger import KeptLedger, LedgerRun
from resolver.models.conventions import Conventions
from resolver.models.run import (
    CheckedCommand,
    Continuation,
    Evidence,
    ExportedChange,
    Outcome,
    Patch,
    Publication,
    Task,
    Trigger,
    TriggerKind,
)
from resolver.publishing.thread_answers import RepliesPosted
from resolver.runs.outcome_json import OutcomeFile
from resolver.runs.output import Output
from resolver.runs.wiring.knowledge import Knowledge
from resolver.runs.wiring.sandbox import RunHost
from resolver.security.redaction import Redactor

BudgetProvider = Callable[[Settings], float]
"""US dollars that a run with these settings may cost of what its operator has left for it, from
which its own earlier cost is not taken off. Raises OverBudget when too little is left."""


def unlimited_budget(_: Settings) -> float:
    """Return infinity: nothing but the run's own limits bounds it."""
    return float("inf")


@dataclass(frozen=True)
class RunRequest:
    """One delivery to work on.

    load: settings, given the parsed `.github/resolver.yml` of the target's default branch.
    publish: False does everything but push, open and comment.
    resume: the output folder holds the log of this very run, which was cut off and is resumed.
        Without an event in it the run starts.
    bounds: fields of Limits that a person has set anew for a resumed run.
    issue: path of the issue's file, for a local checkout.
    source: cloned from there instead of from where the log says.
    continuation: the earlier run whose log the output folder begins with, and which is continued.
    control: where people's requests to the running run arrive.
    continues: the log is kept where a later comment finds it, so that the run can be continued.
    notices: what people should know of how it was started, shown as warnings.
    page: where the run can be looked at while it runs and afterwards; it has no files.
    actions_run: the run of GitHub Actions that this is part of, as `AtWork.job` has it.
    retry_until: a run that an outage ends is done again until then; None: it is not.
    budget: asked once, when the settings of the repository are known.
    """

    trigger: Trigger
    run: str
    output: Output
    load: Callable[[dict[str, object]], Settings]
    host: RunHost
    publish: bool = True
    resume: bool = False
    bounds: Mapping[str, float] = field(default_factory=dict)
    issue: str = ""
    source: str = ""
    continuation: Continuation | None = None
    control: Control = field(default_factory=Control)
    continues: bool = False
    notices: tuple[str, ...] = ()
    retry_until: datetime | None = None
    budget: BudgetProvider = unlimited_budget
    progress: Subscriber | None = None
    log_url: str = ""
    page: str = ""
    actions_run: str = ""
    now: Clock = utc_now

    @property
    def is_local(self) -> bool:
        """True for a checkout on this machine, where nobody reads comments."""
        return self.trigger.kind is TriggerKind.LOCAL

    @property
    def has_log(self) -> bool:
        """True when the output folder holds a log that the run is to be resumed from."""
        return (self.resume or self.continuation is not None) and self.output.has_events

    def redactor(self, settings: Settings) -> Redactor:
        """Return a redactor of every secret of the settings and of the machine's environment."""
        return self.host.redactor(settings)

    def credential(self, settings: Settings) -> Credential | None:
        """Return what git on the host shows the forge now; None for a local checkout.

        Not to be stored: its token may expire. Raises ForgeError.
        """
        if self.is_local:
            return None
        return self.host.tokens.credential(settings, self.trigger.repository)


@dataclass(frozen=True)
class AcceptedRun:
    """A request that may start work: its requester is authorized and its quotas have room.

    reservation: its entry in the quota ledger, where it has one. quota_left: US dollars that the
    quotas of the day leave it. ledger: with the reservation, as this run has written it.
    """

    reservation: LedgerRun | None = None
    quota_left: float = float("inf")
    ledger: KeptLedger | None = None


@dataclass(frozen=True)
class ReportedRun:
    """The conversation is told that the run has started.

    progress: keeps the run's comment up to date; None where nobody may see one.
    """

    progress: ProgressReporter | None = None


@dataclass(frozen=True)
class RunTask:
    """What is to be done, as the requester saw it or as the resumed log says.

    request: with a trigger that stands for the whole request. log: of a resumed run. base: the
    commit that the log started from.
    """

    request: RunRequest
    task: Task
    log: RunLog | None = None
    base: str | None = None


@dataclass(frozen=True)
class ClonedRepository:
    """The host's clone, and the task with what only the clone shows.

    base_made: when the base commit was made; None where it is the one that the requester saw.
    """

    task: Task
    workspace: Workspace
    base_made: datetime | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class PreparedRun:
    """Everything that the work needs.

    settings: with those of the repository, and the agent that does the work. agents: the
    repository's own. max_cost: US dollars that the log as a whole may cost, whatever people grant.
    update: how a request to bring a pull request up to date is done; "agent" for any other work.
    """

    request: RunRequest
    settings: Settings
    task: Task
    workspace: Workspace
    base_made: datetime | None
    conventions: Conventions
    agents: Definitions
    knowledge: Knowledge
    max_cost: float
    update: Literal["agent", "up_to_date", "clean_merge"] = "agent"
    warnings: tuple[str, ...] = ()

    @property
    def redactor(self) -> Redactor:
        """A redactor of every secret that the run knows."""
        return self.request.redactor(self.settings)

    def credential(self) -> Credential | None:
        """Return what git on the host shows the forge now. Raises ForgeError."""
        return self.request.credential(self.settings)


@dataclass(frozen=True)
class OpenedLog:
    """The event log that the agent's work is written to."""

    log: RunLog


@dataclass(frozen=True)
class ExecutedRun:
    """The end of the agent's work, and the change that was taken out of the sandbox.

    leaking: files of the change that hold a secret of ours. change: as it was exported; None where
    no sandbox was needed.
    """

    outcome: Outcome
    patch: Patch
    commands: tuple[CheckedCommand, ...] = ()
    change: ExportedChange | None = None
    leaking: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublishedRun:
    """What is public of the run's work so far. A later one replaces an earlier one.

    is_earlier: an earlier run of the same request had published it.
    """

    publication: Publication
    warnings: tuple[str, ...] = ()
    is_earlier: bool = False


StageValue = (
    AcceptedRun
    | ReportedRun
    | RunTask
    | ClonedRepository
    | PreparedRun
    | OpenedLog
    | ExecutedRun
    | Evidence
    | PublishedRun
    | RepliesPosted
)


@dataclass(frozen=True)
class StageValues:
    """The values of the stages that a run has reached; None for those that it has not.

    settings: the operator's. interrupted: how the agent's work stood when the run failed.
    """

    request: RunRequest
    settings: Settings
    accepted: AcceptedRun | None = None
    reported: ReportedRun | None = None
    read: RunTask | None = None
    cloned: ClonedRepository | None = None
    prepared: PreparedRun | None = None
    opened: OpenedLog | None = None
    executed: ExecutedRun | None = None
    evidence: Evidence | None = None
    published: PublishedRun | None = None
    replied: RepliesPosted | None = None
    interrupted: Outcome | None = None

    def with_value(self, value: StageValue) -> "StageValues":
        """Return these values with the one of the stage that was reached now."""
        reached: dict[str, Any] = {_FIELDS[type(value)]: value}
        return replace(self, **reached)

    @property
    def current_request(self) -> RunRequest:
        """The request, with the trigger that stands for all of it once that is known."""
        if self.prepared is not None:
            return self.prepared.request
        return self.read.request if self.read else self.request

    @property
    def current_settings(self) -> Settings:
        """The repository's settings once they are known, else the operator's."""
        return self.prepared.settings if self.prepared else self.settings

    @property
    def task(self) -> Task | None:
        """The task, as far as it is known."""
        newest = self.prepared or self.cloned or self.read
        return newest.task if newest else None

    @property
    def base(self) -> str | None:
        """The commit that the work starts from."""
        newest = self.prepared or self.cloned
        if newest is not None:
            return newest.workspace.base
        return self.read.base if self.read else None

    @property
    def base_made(self) -> datetime | None:
        """When that commit was made; None where it is the one that the requester saw."""
        newest = self.prepared or self.cloned
        return newest.base_made if newest else None

    @property
    def log(self) -> RunLog | None:
        """The run's event log, once it is open."""
        if self.opened is not None:
            return self.opened.log
        return self.read.log if self.read else None

    @property
    def progress(self) -> ProgressReporter | None:
        """What keeps the run's comment up to date."""
        return self.reported.progress if self.reported else None

    @property
    def outcome(self) -> Outcome | None:
        """How the agent's work ended."""
        return self.executed.outcome if self.executed else self.interrupted

    @property
    def publication(self) -> Publication:
        """What is public of the run's work."""
        publication = self.published.publication if self.published else Publication()
        if self.replied is not None and self.replied.comment_url:
            return publication.model_copy(update={"comment_url": self.replied.comment_url})
        return publication

    @property
    def patch(self) -> Patch | None:
        """The change, with the commit that it was published as."""
        if self.executed is None:
            return None
        commit = self.publication.commit
        patch = self.executed.patch
        return patch.model_copy(update={"commit": commit}) if commit else patch

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reader should know, in the order in which it was found out."""
        parts = (self.cloned, self.prepared, self.executed, self.published, self.replied)
        return tuple(warning for part in parts if part is not None for warning in part.warnings)

    def redact(self, failure: RunFailure) -> RunFailure:
        """Return the failure without secrets: its text may quote anything."""
        clean = self.current_request.redactor(self.current_settings).redact_text
        what, next_step = clean(failure.what), clean(failure.next_step)
        return failure.model_copy(update={"what": what, "next_step": next_step})


_FIELDS: Mapping[type[StageValue], str] = {
    AcceptedRun: "accepted",
    ReportedRun: "reported",
    RunTask: "read",
    ClonedRepository: "cloned",
    PreparedRun: "prepared",
    OpenedLog: "opened",
    ExecutedRun: "executed",
    Evidence: "evidence",
    PublishedRun: "published",
    RepliesPosted: "replied",
}


@dataclass(frozen=True)
class RunResult:
    """How a run ended: what the command line, the Action, the server and outcome.json read.

    report: as the conversation was told it. log: closed; its state stays readable. comment_failed:
    the conversation was to be told how it ended, and could not be. outage: the outage that has
    ended the run, or has kept its end from being told; "" for none.
    """

    request: RunRequest
    report: Report
    outcome_file: OutcomeFile
    publication: Publication
    exit_code: int
    outcome: Outcome | None = None
    failure: RunFailure | None = None
    log: RunLog | None = None
    publishable: bool = False
    comment_failed: bool = False
    outage: Cause = ""
    warnings: tuple[str, ...] = ()

    @property
    def is_answer(self) -> bool:
        """True when the run answered a question."""
        return self.report.answers
