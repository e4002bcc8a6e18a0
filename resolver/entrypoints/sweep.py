"""The sweep: resolves the labelled issues of a repository one after the other, as if each had just
been labelled, within a limit of runs and of cost."""

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
from resolver.github.events.permission import IgnoredEvent, authorize
from resolver.github.events.sweep import a_second_later, labelled_trigger
from resolver.github.github_forge import GitHubForge
from resolver.github.text.markdown import single_line
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
"""Minimum share of a run's budget that must be left to start one. With less it would only reach its
limit."""


class SweepFate(StrEnum):
    """The result of an issue in a sweep; the value is shown to people."""

    DONE = "done"
    DONE_BEFORE = "done before"
    SKIPPED = "skipped"
    FAILED = "failed"
    NOT_BEGUN = "not started"
    WOULD_BEGIN = "would start"


@dataclass(frozen=True)
class SweepRow:
    """One issue of a sweep.

    why: the reason in one line, "" if the fate says everything. url: page with the details. cost:
    US dollars of the replies with a known price; unpriced: number of replies without one.
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
        """The title, escaped for a cell of a Markdown table."""
        return _cell(self.title, 100)

    @property
    def inert_why(self) -> str:
        """The reason, escaped for a cell of a Markdown table."""
        return _cell(self.why, 300)


def _cell(text: str, limit: int) -> str:
    """Return text from outside for a cell of a Markdown table."""
    return single_line(text.replace("|", "¦"), limit)


@dataclass(frozen=True)
class SweepBounds:
    """Limits of a sweep. issues: number of runs. total: US dollars for all of them."""

    issues: int
    total: float


@dataclass
class Sweep:
    """One sweep of `repository`. Not thread-safe.

    folder: each run has its own folder issue-N in it, created when the run starts.
    load: returns the settings of a run, given the repository's settings file.
    settings: the operator's.
    dry: True to start, write and comment nothing.
    stopping: set when the process is to end.
    ended: called with the result of each run.
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
        """US dollars spent so far on replies with a known price."""
        return sum(row.cost for row in self.rows)

    @property
    def left(self) -> float:
        """US dollars that are left."""
        return self.bounds.total - self.spent

    def run(self) -> tuple[SweepRow, ...]:
        """Execute the sweep. Return one row for each issue, oldest issue first.

        Raises ForgeError if the issues can't be listed; no run has started then.
        """
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
        """Add rows for the remaining issues after a signal that came between two runs or at the end
        of one."""
        seen = {row.number for row in self.rows}
        rest = [issue for issue in issues if issue.number not in seen]
        for issue in rest:
            self._add(_not_begun(issue, what))

    def _add(self, row: SweepRow) -> None:
        """Add a row, without the secrets that its text may quote."""
        clean = self.host.redactor(self.settings).redact_text
        self.rows.append(replace(row, title=clean(row.title), why=clean(row.why)))

    def _bound(self) -> str:
        """Return why no further run is started, "" if one may start."""
        if self.stopping.is_set():
            return "the sweep was stopped"
        if self.begun >= self.bounds.issues:
            return f"a sweep starts at most {self.bounds.issues} runs (--max-issues)"
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
        """Return the trigger to start, or the row that says why nothing is started.

        Raises ForgeError and, for a dry run, Refused.
        """
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
            comments.close_comments_of_killed_runs(issue.number, self.now(), mention)
        since = None if found else labelled.at_work_since(*candidates)
        if since is not None and self.now() - since < self._longest:
            why = f"a run that started at {since:%H:%M} UTC may still be working on it"
            return SweepRow(issue.number, issue.title, SweepFate.SKIPPED, why)
        if self.dry:
            authorize(trigger, self.forge, self.settings.who_may)
            self.begun += 1
            return SweepRow(issue.number, issue.title, SweepFate.WOULD_BEGIN)
        return trigger

    @property
    def _longest(self) -> timedelta:
        """Longest duration of a run, including extensions by comments. A run that is older was
        killed."""
        settings = self.settings
        return timedelta(seconds=settings.ceiling.max_time + settings.timeout_seconds.setup)

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
        """Return the first trigger that an earlier run has answered, with its publication;
        otherwise the first trigger and None."""
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
            archives=self.settings.keep_log,
            continues=self.settings.keep_log,
            budget=lambda _: left,
        )
        with watch_comments(watch_of(job, self.settings)):
            result = run_pipeline(job, self.forge)
        row = self._ended(result, issue)
        self.begun += row.fate in {SweepFate.DONE, SweepFate.FAILED}
        self._add(row)  # before a signal can interrupt what follows
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
    """Return the fate of an issue and its reason. A refusal is no failure: nothing was started."""
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
    """Return the URL for a person: of the pull request, otherwise of the comment."""
    pull = publication.pull_request
    return (pull.url if pull else None) or publication.comment_url or ""


def _not_begun(issue: LabelledIssue, why: str) -> SweepRow:
    return SweepRow(issue.number, issue.title, SweepFate.NOT_BEGUN, why)


def render_sweep(sweep: Sweep, template: str, server: str) -> str:
    """Return the sweep as text. template: name of a template in prompts/run."""
    return render(f"run/{template}", sweep=sweep, server=server.rstrip("/"), fates=_counts(sweep))


def _counts(sweep: Sweep) -> dict[str, int]:
    counted = {fate.value: sum(row.fate is fate for row in sweep.rows) for fate in SweepFate}
    return {fate: count for fate, count in counted.items() if count}
