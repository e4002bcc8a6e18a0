"""One delivery to work on, and what is known of its run so far."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from resolver.agents.definitions import Definitions
from resolver.agents.registry import answers, model_of
from resolver.agents.reviewer import REVIEWER
from resolver.assembly.knowledge import Knowledge
from resolver.assembly.models import model_name
from resolver.assembly.sandbox import Host
from resolver.causes import OUTAGES
from resolver.controller.confirmation import waiting_in
from resolver.controller.control import Control
from resolver.conventions import Conventions
from resolver.course import Course
from resolver.errors import Cause
from resolver.events.stream import Clock, Subscriber, utc_now
from resolver.forge.report import Failure, Report
from resolver.forge.telling import Telling
from resolver.forge.wording import TRACE_ROOM
from resolver.model import (
    Continuation,
    Evidence,
    Limits,
    Outcome,
    Patch,
    Publication,
    RunState,
    Task,
    Trigger,
    TriggerKind,
    Unverified,
)
from resolver.output import MOST_CHANGE, Output
from resolver.runlog import RunLog
from resolver.security.redaction import Redactor
from resolver.settings import Settings
from resolver.summary import outcome_json
from resolver.trace.markdown import render_comment_trace
from resolver.triggers.ledger import KeptLedger, Run
from resolver.verify.course import course_of
from resolver.verify.readiness import unverified
from resolver.workspace.git import Credential

UNWRITABLE: frozenset[Cause] = frozenset(
    {"push_permission", "token", "sso", "archived", "disabled", "moved", "secret_scanning"}
)
"""Why a push was refused, where any other push to the repository is refused as well."""

Purse = Callable[[Settings], float]
"""US dollars that a run with these settings may cost of what its operator has left for it, from
which its own earlier cost is not taken off. Raises OverBudget when too little is left."""


def bottomless(_: Settings) -> float:
    """Nothing but the run's own limits bounds it."""
    return float("inf")


@dataclass(frozen=True)
class Job:
    """One delivery to work on.

    load: settings, given the parsed `.github/resolver.yml` of the target's default branch.
    publish: False does everything but push, open and comment.
    resume: the output folder holds the log of this very run, which was cut off: go on from it.
        Without an event in it the run begins.
    bounds: fields of Limits that a person has set anew for a run that goes on.
    issue: path of the issue's file, for a local checkout.
    source: cloned from there and not from where the log says.
    continuation: the earlier run whose log the output folder begins with: go on from it.
    control: where people's requests to the run at work arrive.
    continues: the log is kept where a later comment finds it, and the run can go on from it.
    notices: what people should know of how it was started, told as warnings.
    page: where the run can be looked at while it goes on and after it; it has no files.
    actions_run: the run of GitHub Actions that this is part of, as `AtWork.job` has it.
    retry_until: a run that an outage ends is done again until then; None: it is not.
    purse: asked once, when the settings of the repository are known.
    """

    trigger: Trigger
    run: str
    output: Output
    load: Callable[[dict[str, object]], Settings]
    host: Host
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
    purse: Purse = bottomless
    progress: Subscriber | None = None
    log_url: str = ""
    page: str = ""
    actions_run: str = ""
    now: Clock = utc_now


@dataclass
class Record:
    """What is known of a run so far. The report is read off it, however the run ends."""

    job: Job
    settings: Settings
    task: Task | None = None
    base: str | None = None
    base_made: datetime | None = None
    """When that commit was made; None where it is the one that the requester saw."""
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
    booked: Run | None = None
    """Its entry in the ledger of the repository's runs, where it has one."""
    booked_ledger: KeptLedger | None = None
    """The ledger with that entry, as this run has kept it."""
    ceilings_left: float = float("inf")
    """US dollars that the ceilings of the day leave it."""
    silent: bool = False
    """True when its refusal is not told on the thread: it was today already, or the operator wants
    it so."""
    untold: bool = False
    """True when the thread was to be told how it ended, and could not be."""
    untold_cause: Cause = ""
    """Why it could not be told."""
    most_money: float = float("inf")
    """US dollars that the log as a whole may come to, whatever people grant it."""
    agents: Definitions = field(default_factory=Definitions)
    """The repository's own agents."""
    knowledge: Knowledge = field(default_factory=Knowledge)
    """What its agents are told beside the task."""
    telling: Telling | None = None
    """Tells how far the run is, where somebody may see it."""
    conventions: Conventions = field(default_factory=Conventions)
    """How the repository writes pull requests and commits."""

    @property
    def answers(self) -> bool:
        """True when the run answers a question: nothing of its working tree is made public."""
        opening = self.log.opening if self.log else None
        return opening is not None and answers(opening.agent, self.agents.agents)

    @property
    def ceiling(self) -> Limits:
        """The most that comments can extend the bounds of the run to."""
        most = self.settings.ceiling
        return most.model_copy(update={"max_budget": min(most.max_budget, self.most_money)})

    @property
    def merges(self) -> bool:
        """True when the work is a merge: it is one also where nothing is changed beside."""
        return bool(self.task and self.task.pull and self.task.pull.conflicts)

    @property
    def reviews(self) -> bool:
        """True when the run's agent reviews a pull request: what it noted becomes a review."""
        opening = self.log.opening if self.log else None
        return opening is not None and opening.agent == REVIEWER and opening.task.pull is not None

    @property
    def model(self) -> str:
        """The model that the run's agent asks, as a person is told it."""
        opening = self.log.opening if self.log else None
        named = model_of(self.settings.agent, self.agents.agents) or model_name(self.settings)
        return named or (opening.model if opening else "")

    @property
    def outage(self) -> Cause:
        """The outage that has ended the run, or has kept its end from being told; "" for none."""
        ended = self.outcome is not None and self.outcome.state is RunState.ERROR
        because = self.outcome.because if self.outcome is not None and ended else ""
        cause = self.failure.cause if self.failure is not None else because
        return next((each for each in (cause, self.untold_cause) if each in OUTAGES), "")

    @property
    def can_be_published(self) -> bool:
        """Whether a change lies in the output folder that is done and not public."""
        finished = self.log is not None and self.log.state.run_state is RunState.FINISHED
        done = finished and not self.answers  # what the agent rejects is never published
        # a branch without its pull request is half of it
        half = self.failure is not None and self.publication.pull_request is None
        public = self.publication.branch is not None and not half
        change = self.job.output.change if done and not public else None
        return change is not None and change.bundle is not None

    @property
    def _is_draft(self) -> bool:
        """Whether its pull request is one: by the setting, else unless it is ready for review."""
        if self.settings.draft != "auto":
            return self.settings.draft == "always"
        return self._unverified != ""

    @property
    def _unverified(self) -> Unverified:
        """What its change lacks to be ready for review."""
        if any(each.untouched for each in self.publication.conflicts):
            return "untouched"
        return unverified(self.outcome, self.course)

    @property
    def course(self) -> Course:
        """What its log shows of checks and edits."""
        return course_of(self.log.state.events if self.log else ())

    @property
    def publishable(self) -> Literal["", "comment", "folder"]:
        """By what its kept change can be made public; "" where it would be refused again."""
        refused = self.failure is not None and self.failure.is_lasting
        change = self.job.output.change if self.can_be_published and not refused else None
        if change is None or change.bundle is None:
            return ""
        # a job has no place for it but the repository, which takes nothing then
        lost = self.failure is not None and self.failure.cause in UNWRITABLE
        fits = change.bundle.stat().st_size <= MOST_CHANGE
        kept = self.job.continues and fits and not (lost and self.job.actions_run)
        return "comment" if kept else "folder"

    def report(self) -> Report:
        """Everything that is told about the run."""
        pull = self.publication.pull_request
        trace = render_comment_trace(self.log.state.events, TRACE_ROOM) if self.log else ""
        return Report(
            trigger=self.job.trigger,
            run=self.job.run,
            model=self.model,
            mention=self.settings.mention,
            task=self.task,
            outcome=self.outcome,
            base=self.base or "",
            base_made=self.base_made,
            patch=self.patch,
            evidence=self.evidence,
            branch=self.publication.branch,
            pull_request=pull,
            review=self.publication.review,
            failure=self.failure,
            draft=self._is_draft,
            unverified=self._unverified,
            conventions=self.conventions,
            wishes=self.settings.wishes,
            warnings=(*self.job.notices, *self.warnings, *(pull.notes if pull else ())),
            trace_markdown=trace,
            log_url=self.job.log_url,
            page=self.job.page,
            course=self.course,
            told=self.telling.told if self.telling else None,
            continues=self.job.continues and self.log is not None,
            publishable=self.publishable,
            wanted=waiting_in(self.log.state) if self.log else None,
            answers=self.answers,
            how=self.publication.how,
            publication=self.publication,
            retry_until=self.job.retry_until if self.outage else None,
        )

    def fail(self, failure: Failure, exit_code: int) -> None:
        """Note the first failure. Its words may quote anything, so they lose every secret."""
        if self.failure is None:
            clean = self.redactor().redact_text
            what, next_step = clean(failure.what), clean(failure.next_step)
            self.failure = failure.model_copy(update={"what": what, "next_step": next_step})
        self.exit_code = self.exit_code or exit_code

    def summary(self) -> dict[str, Any]:
        """What outcome.json says."""
        return outcome_json(
            run=self.job.run,
            trigger=self.job.trigger,
            model=self.model,
            base=self.base,
            outcome=self.outcome,
            patch=self.patch,
            publication=self.publication,
            earlier=self.job.continuation.publication if self.job.continuation else Publication(),
            evidence=self.evidence,
            failure=self.failure,
            exit_code=self.exit_code,
            divergences=self.log.state.divergences if self.log else [],
            spent=self.log.state if self.log else None,
        )

    def redactor(self) -> Redactor:
        """Knows every secret of the settings and of the machine's environment."""
        return self.job.host.redactor(self.settings)

    def credential(self) -> Credential | None:
        """What git on the host shows the forge now; None for a local checkout. Not to be kept:
        its token may end. Raises ForgeError."""
        trigger = self.job.trigger
        if trigger.kind is TriggerKind.LOCAL:
            return None
        return self.job.host.tokens.credential(self.settings, trigger.repository)
