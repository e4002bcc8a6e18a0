"""A sweep: the issues of a repository that wear the label, done one after the other like late
events of the labelling, within a number of runs and an amount of money.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.errors import Refused, ResolverError, RunStopped
from resolver.events.run_log import spent_by
from resolver.events.stream import Clock, Subscriber, utc_now
from resolver.github.context.labelled_issues import LabelledIssue, LabelledIssues, Labelling
from resolver.github.events.ignored import IgnoredEvent
from resolver.github.events.permission import authorize
from resolver.github.events.sweep import a_second_later, labelled_trigger
from resolver.github.github_forge import GitHubForge
from resolver.github.text.escape import single_line
from resolver.models.run import Publication, Trigger
from resolver.runs.common import run_id
from resolver.runs.conversation.commands import archive, watch_of
from resolver.runs.conversation.watch import watch_comments
from resolver.runs.output import Output
from resolver.runs.pipeline import run_pipeline
from resolver.runs.stages import RunRequest, RunResult
from resolver.runs.wiring.sandbox import RunHost

logger = logging.getLogger("resolver.entrypoints.sweep")

LEAST_SHARE = 0.1
"""Of a run's own budget: with less than that left a run that began would only reach its limit."""


class SweepFate(StrEnum):
    """What became of an issue in a sweep; the value is what a person reads."""

    DONE = "done"
    DONE_BEFORE = "done before"
    SKIPPED = "skipped"
    FAILED = "failed"
    NOT_BEGUN = "not begun"
    WOULD_BEGIN = "would begin"


@dataclass(frozen=True)
class SweepRow:
    """One issue. why: in one line, "" where the fate says all. url: where to look.

    cost: US dollars of the replies whose price is known; unpriced: how many have none.
    """

    number: int
    title: str
    fate: SweepFate
    why: str = ""
    url: str = ""
    cost: float = 0.0
    unpriced: int = 0

    @property
    def inert_title(self) -> str:
        return _cell(self.title, 100)

    @property
    def inert_why(self) -> str:
        return _cell(self.why, 300)


def _cell(text: str, limit: int) -> str:
    """Others' words in a cell of a markdown table."""
    return single_line(text.replace("|", "¦"), limit)


@dataclass(frozen=True)
class SweepBounds:
    """issues: runs that are begun at most. total: US dollars that they may cost together."""

    issues: int
    total: float


@dataclass
class Sweep:
    """One sweep of `repository`. Not for several threads.

    folder: below it each run has its own, issue-N; made when a run begins.
    load, settings: the settings of a run, given the repository's; and the operator's.
    dry: nothing is begun, written or told.
    stopping: set when the process is to end.
    """

    repository: str
    forge: GitHubForge
    settings: Settings
    load: Callable[[Mapping[str, Any]], Settings]
    host: RunHost
    bounds: SweepBounds
    folder: Path
    dry: bool = False
    progress: Subscriber | None = None
    log_url: str = ""
    actions_run: str = ""
    now: Clock = utc_now
    stopping: threading.Event = field(default_factory=threading.Event)
    ended: Callable[[RunResult], None] = lambda _: None
    rows: list[SweepRow] = field(default_factory=list)
    begun: int = 0

    @property
    def spent(self) -> float:
        """US dollars so far, of the replies whose price is known."""
        return sum(row.cost for row in self.rows)

    @property
    def left(self) -> float:
        """US dollars."""
        return self.bounds.total - self.spent

    def run(self) -> tuple[SweepRow, ...]:
        """Do it; one row an issue, oldest first. Raises ForgeError when the issues can't be
        listed: nothing has been begun then."""
        labelled = self.forge.labelled(self.settings.label)
        issues = labelled.oldest_first()
        try:
            for issue in issues:
                bound = self._bound()
                if bound:
                    self._add(_not_begun(issue, bound))
                else:
                    self._one(labelled, issue)
        except RunStopped as stopped:
            self.stopping.set()
            self._stop(issues, stopped.what)
        return tuple(self.rows)

    def _stop(self, issues: Iterable[LabelledIssue], what: str) -> None:
        """The signal came between two runs, or in the last steps of one."""
        seen = {row.number for row in self.rows}
        rest = [issue for issue in issues if issue.number not in seen]
        for issue in rest:
            self._add(_not_begun(issue, what))

    def _add(self, row: SweepRow) -> None:
        """With words that may quote anything, so they lose every secret."""
        clean = self.host.redactor(self.settings).redact_text
        self.rows.append(replace(row, title=clean(row.title), why=clean(row.why)))

    def _bound(self) -> str:
        """Why no further run is begun, "" when one may be."""
        if self.stopping.is_set():
            return "the sweep was stopped"
        if self.begun >= self.bounds.issues:
            return f"a sweep begins {self.bounds.issues} at most (--max-issues)"
        if self.left < LEAST_SHARE * min(self.settings.max_budget, self.bounds.total):
            return f"${self.spent:.2f} of ${self.bounds.total:.2f} are spent (--max-total)"
        return ""

    def _one(self, labelled: LabelledIssues, issue: LabelledIssue) -> None:
        try:
            found = self._looked_at(labelled, issue)
            if isinstance(found, SweepRow):
                self._add(found)
            else:
                self._begin(found, issue)
        except Refused as refused:
            self._add(SweepRow(issue.number, issue.title, SweepFate.SKIPPED, refused.what))
        except ResolverError as error:
            logger.warning("#%d: %s", issue.number, error.what)
            self._add(SweepRow(issue.number, issue.title, SweepFate.FAILED, error.what))

    def _looked_at(self, labelled: LabelledIssues, issue: LabelledIssue) -> SweepRow | Trigger:
        """What is to be begun, or why nothing is. Raises ForgeError and, for a dry run, Refused."""
        labelling = labelled.labelling(issue)
        trigger = self._trigger(issue, labelling)
        if isinstance(trigger, IgnoredEvent):
            url = labelling.pull_request if labelling else ""
            return SweepRow(issue.number, issue.title, SweepFate.SKIPPED, trigger.reason, url)
        assert labelling is not None
        candidates = (trigger, a_second_later(trigger, issue, labelling))
        trigger, found = self._earlier(*candidates)
        if found is not None and (found.comment_url or self.dry):
            return SweepRow(issue.number, issue.title, SweepFate.DONE_BEFORE, url=_page(found))
        if found is None and not self.dry:
            comments, mention = self.forge.run_comments, self.settings.mention
            comments.close_died(issue.number, self.now(), mention)
        since = None if found else labelled.at_work_since(*candidates)
        if since is not None and self.now() - since < self._longest:
            why = f"a run that began at {since:%H:%M} UTC may be at work on it"
            return SweepRow(issue.number, issue.title, SweepFate.SKIPPED, why)
        if self.dry:
            authorize(trigger, self.forge, self.settings.who_may)
            self.begun += 1
            return SweepRow(issue.number, issue.title, SweepFate.WOULD_BEGIN)
        return trigger

    @property
    def _longest(self) -> timedelta:
        """How long a run can take, with what comments may grant it; later it has been killed."""
        return timedelta(seconds=self.settings.ceiling.max_time + self.settings.setup_timeout)

    def _trigger(self, issue: LabelledIssue, labelling: Labelling | None) -> Trigger | IgnoredEvent:
        return labelled_trigger(
            issue,
            labelling,
            repository=self.repository,
            bot_login=self.settings.bot_login,
            allowed_users=self.settings.allowed_users,
            denied_users=self.settings.denied_users,
        )

    def _earlier(self, *triggers: Trigger) -> tuple[Trigger, Publication | None]:
        """The one that an earlier run has answered, else the first."""
        for trigger in triggers:
            found = self.forge.find_publication(trigger)
            if found is not None:
                return trigger, found
        return triggers[0], None

    def _begin(self, trigger: Trigger, issue: LabelledIssue) -> None:
        left = self.left
        job = RunRequest(
            trigger=trigger,
            run=run_id(trigger.key, trigger.at),
            output=Output(self.folder / f"issue-{issue.number}"),
            load=self.load,
            host=self.host,
            progress=self.progress,
            log_url=self.log_url,
            actions_run=self.actions_run,
            continues=self.settings.keep_log,
            budget=lambda _: left,
        )
        with watch_comments(watch_of(job, self.settings)):
            result = run_pipeline(job, self.forge)
        row = self._ended(result, issue)
        self.begun += row.fate in {SweepFate.DONE, SweepFate.FAILED}
        self._add(row)  # before a signal can come in what follows
        archive(result, self.settings)
        self.ended(result)

    def _ended(self, result: RunResult, issue: LabelledIssue) -> SweepRow:
        fate, why = _fate(result)
        cost, unpriced = 0.0, 0
        if result.log is not None:
            cost, unpriced = spent_by(result.log.state.events, result.request.run)
        url = _page(result.publication)
        return SweepRow(issue.number, issue.title, fate, why, url, cost, unpriced)


def _fate(result: RunResult) -> tuple[SweepFate, str]:
    """What became of it, and why. A refusal is no failure: nothing was begun."""
    if result.publication.repeated and result.failure is None:
        return SweepFate.DONE_BEFORE, ""
    if result.failure is not None:
        refused = result.failure.kind in {"refused", "ceiling"}
        return SweepFate.SKIPPED if refused else SweepFate.FAILED, result.failure.what
    if result.exit_code == 0:
        return SweepFate.DONE, ""
    return (
        SweepFate.DONE if result.exit_code == 3 else SweepFate.FAILED
    ), result.outcome_file.reason


def _page(publication: Publication) -> str:
    """Where a person looks: the pull request, else the comment."""
    pull = publication.pull_request
    return (pull.url if pull else None) or publication.comment_url or ""


def _not_begun(issue: LabelledIssue, why: str) -> SweepRow:
    return SweepRow(issue.number, issue.title, SweepFate.NOT_BEGUN, why)


def render_sweep(sweep: Sweep, template: str, server: str) -> str:
    """The sweep in words. template: of prompts/run."""
    return render(f"run/{template}", sweep=sweep, server=server.rstrip("/"), fates=_counts(sweep))


def _counts(sweep: Sweep) -> dict[str, int]:
    counted = {fate.value: sum(row.fate is fate for row in sweep.rows) for fate in SweepFate}
    return {fate: count for fate, count in counted.items() if count}
