"""The sweep: resolves the labeled issues of a repository one after the other, as if each had just
been labeled, within a limit of runs and of cost."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.console import Console

from resolver.config.settings import Settings, load_settings
from resolver.config.templates import render
from resolver.entrypoints.action import (
    OUTPUT_FOLDER,
    actions_run,
    append_summary,
    change_owner,
    job_url,
    open_output,
    write_outputs,
)
from resolver.errors import Refused, ResolverError, RunStopped
from resolver.events.run_log import cost_of_run
from resolver.events.stream import Clock, Subscriber, utc_now
from resolver.github.client.access import check_repository
from resolver.github.context.labeled_issues import LabeledIssues, labeled_trigger, with_later_time
from resolver.github.events.payloads import Issue
from resolver.github.events.permission import IgnoredEvent, authorize
from resolver.github.github_forge import GitHubForge
from resolver.github.text.markdown import single_line
from resolver.models.run import Publication, Trigger
from resolver.runs.common import (
    default_output,
    filtered_log,
    github_forge,
    listening_policy,
    open_host,
    require_model,
    run_id,
    stop_on_signals,
)
from resolver.runs.conversation.commands import archive_run_log
from resolver.runs.conversation.watch import watch_comments
from resolver.runs.output import Output
from resolver.runs.pipeline import run_pipeline
from resolver.runs.reporting import print_result
from resolver.runs.stages import RunRequest, RunResult
from resolver.runs.wiring.sandbox import RunHost
from resolver.trace.plain import for_terminal

logger = logging.getLogger("resolver.entrypoints.sweep")

MIN_BUDGET_SHARE = 0.1
"""Minimum share of a run's budget that must be left to start one. With less it would only reach its
limit."""


class SweepFate(StrEnum):
    """The result of an issue in a sweep; the value is shown to people."""

    DONE = "done"
    DONE_BEFORE = "done before"
    SKIPPED = "skipped"
    FAILED = "failed"
    NOT_STARTED = "not started"
    WOULD_START = "would start"


@dataclass(frozen=True)
class SweepRow:
    """One issue of a sweep.

    reason: in one line, None if the fate says everything. url: page with the details. cost: US
    dollars of the replies with a known price; unpriced: number of replies without one.
    """

    number: int
    title: str
    fate: SweepFate
    reason: str | None = None
    url: str | None = None
    cost: float = 0.0
    unpriced: int = 0


def _cell(text: str, limit: int) -> str:
    """Return text from outside for a cell of a Markdown table."""
    return single_line(text.replace("|", "¦"), limit)


@dataclass(frozen=True)
class SweepLimits:
    """Limits of one sweep: the number of runs that it starts, and their cost in US dollars."""

    runs: int = 5
    cost: float = 10.0


@dataclass
class Sweep:
    """One sweep of `repository`. Not thread-safe.

    folder: each run has its own folder issue-N in it, created when the run starts.
    load: returns the settings of a run, given the repository's settings file.
    settings: the operator's.
    limits: what bounds the sweep.
    is_dry_run: True to start, write and comment nothing.
    stopping: set when the process is to end.
    on_result: called with the result of each run.
    """

    repository: str
    forge: GitHubForge
    settings: Settings
    load: Callable[[Mapping[str, Any]], Settings]
    host: RunHost
    folder: Path
    limits: SweepLimits = SweepLimits()
    is_dry_run: bool = False
    progress: Subscriber | None = None
    log_url: str | None = None
    actions_run: str | None = None
    now: Clock = utc_now
    stopping: threading.Event = field(default_factory=threading.Event)
    on_result: Callable[[RunResult], None] = lambda _: None
    rows: list[SweepRow] = field(default_factory=list)
    started_runs: int = 0

    @property
    def spent(self) -> float:
        """US dollars spent so far on replies with a known price."""
        return sum(row.cost for row in self.rows)

    @property
    def left(self) -> float:
        """US dollars that are left."""
        return self.limits.cost - self.spent

    def run(self) -> tuple[SweepRow, ...]:
        """Execute the sweep. Return one row for each issue, oldest issue first.

        Raises ForgeError if the issues can't be listed; no run has started then.
        """
        labeled = self.forge.labeled(self.settings.label)
        for issue in labeled.oldest_first():
            stop_reason = self._stop_reason()
            try:
                if stop_reason is not None:
                    self._add_row(issue, SweepFate.NOT_STARTED, stop_reason)
                else:
                    self._process_issue(labeled, issue)
            except RunStopped as stopped:
                # The signal came between two runs, or at the end of one.
                self.stopping.set()
                if not self.rows or self.rows[-1].number != issue.number:
                    self._add_row(issue, SweepFate.NOT_STARTED, stopped.what)
            except Refused as refused:
                self._add_row(issue, SweepFate.SKIPPED, refused.what)
            except ResolverError as error:
                logger.warning("#%d: %s", issue.number, error.what)
                self._add_row(issue, SweepFate.FAILED, error.what)
        return tuple(self.rows)

    def _add_row(
        self, issue: Issue, fate: SweepFate, reason: str | None = None, url: str | None = None,
        cost: float = 0.0, unpriced: int = 0,
    ) -> None:  # fmt: skip
        """Add a row, without the secrets that its text may quote."""
        clean = self.host.redactor(self.settings).redact_text
        title, reason = clean(issue.title), clean(reason) if reason else None
        self.rows.append(SweepRow(issue.number, title, fate, reason, url, cost, unpriced))

    def _stop_reason(self) -> str | None:
        """Return why no further run is started; None if one may start."""
        if self.stopping.is_set():
            return "the sweep was stopped"
        if self.started_runs >= self.limits.runs:
            return f"a sweep starts at most {self.limits.runs} runs (--max-issues)"
        if self.left < MIN_BUDGET_SHARE * min(self.settings.max_budget, self.limits.cost):
            return f"${self.spent:.2f} of ${self.limits.cost:.2f} are spent (--max-total)"
        return None

    def _process_issue(self, labeled: LabeledIssues, issue: Issue) -> None:
        """Start the run of an issue, or add the row that says why nothing is started.

        Raises ForgeError and, for a dry run, Refused.
        """
        labeling, policy = labeled.labeling(issue), listening_policy(self.settings)
        trigger = labeled_trigger(issue, labeling, self.repository, policy)
        if isinstance(trigger, IgnoredEvent):
            url = labeling.pull_request if labeling else None
            return self._add_row(issue, SweepFate.SKIPPED, trigger.reason, url)
        assert labeling is not None
        candidates = (trigger, with_later_time(trigger, issue, labeling))
        published = ((found, self.forge.find_publication(found)) for found in candidates)
        trigger, publication = next((pair for pair in published if pair[1]), (trigger, None))
        if publication is not None and (publication.comment_url or self.is_dry_run):
            return self._add_row(issue, SweepFate.DONE_BEFORE, url=_page_url(publication))
        if publication is None and not self.is_dry_run:
            comments, mention = self.forge.run_comments, self.settings.mention
            comments.close_killed_runs(issue.number, self.now(), mention)
        since = None if publication else labeled.active_since(*candidates)
        # A run that is older than the longest one, with extensions by comments, was killed.
        seconds = self.settings.max_extended_limits.max_time + self.settings.setup_seconds
        if since is not None and self.now() - since < timedelta(seconds=seconds):
            reason = f"a run that started at {since:%H:%M} UTC may still be working on it"
            return self._add_row(issue, SweepFate.SKIPPED, reason)
        if not self.is_dry_run:
            return self._start_run(trigger, issue)
        authorize(trigger, self.forge, self.settings.access_policy)
        self.started_runs += 1
        return self._add_row(issue, SweepFate.WOULD_START)

    def _start_run(self, trigger: Trigger, issue: Issue) -> None:
        request = RunRequest(
            trigger=trigger,
            run=run_id(trigger.key, trigger.at),
            output=Output(self.folder / f"issue-{issue.number}", shared=bool(self.actions_run)),
            load_settings=self.load,
            host=self.host,
            progress=self.progress,
            log_url=self.log_url,
            actions_run=self.actions_run,
            archives_log=True,
            can_be_continued=True,
            budget=self.left,
        )
        with watch_comments(request, self.settings):
            result = run_pipeline(request, self.forge)
        # Before a signal can interrupt what follows.
        self.record_result(result, issue)
        archive_run_log(result, self.settings)
        self.on_result(result)

    def record_result(self, result: RunResult, issue: Issue) -> None:
        """Add the row of a run that has ended."""
        fate, reason = _fate_of_result(result)
        cost, unpriced = 0.0, 0
        if result.log is not None:
            cost, unpriced = cost_of_run(result.log.state.events, result.request.run)
        self.started_runs += fate in {SweepFate.DONE, SweepFate.FAILED}
        self._add_row(issue, fate, reason, _page_url(result.publication), cost, unpriced)


def _fate_of_result(result: RunResult) -> tuple[SweepFate, str | None]:
    """Return the fate of an issue and its reason. A refusal is no failure: nothing was started."""
    if result.publication.repeated and result.failure is None:
        return SweepFate.DONE_BEFORE, None
    if result.failure is not None:
        was_refused = result.failure.kind in {"refused", "ceiling"}
        return SweepFate.SKIPPED if was_refused else SweepFate.FAILED, result.failure.what
    if result.exit_code == 0:
        return SweepFate.DONE, None
    return (
        SweepFate.DONE if result.exit_code == 3 else SweepFate.FAILED
    ), result.outcome_file.reason


def _page_url(publication: Publication) -> str | None:
    """Return the URL for a person: of the pull request, otherwise of the comment."""
    pull = publication.pull_request
    return (pull.url if pull else None) or publication.comment_url


def render_sweep(sweep: Sweep, template: str, server: str) -> str:
    """Return the sweep as text. template: name of a template in prompts/run."""
    counts = Counter(row.fate for row in sweep.rows)
    fates = {fate.value: counts[fate] for fate in SweepFate if counts[fate]}
    return render(
        f"run/{template}", sweep=sweep, server=server.rstrip("/"), fates=fates, cell=_cell
    )


def run_sweep(
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    repository: str,
    print_line: Callable[[str], None],
    *,
    limits: SweepLimits,
    console: Console,
    progress: Subscriber | None,
    dry_run: bool = False,
    output: Path | None = None,
) -> int:
    """Run a sweep, print its report and return the exit code.

    environment, options: sources of the settings.
    print_line: called with each line of the report.
    limits: what bounds the sweep.
    console: where the result of each run is printed.
    progress: subscriber of the events of the runs.
    """
    settings = load_settings(options, environment)
    check_repository(repository)
    if not dry_run:
        require_model(settings)
    host = open_host(environment)
    forge = github_forge(settings, repository, host)
    # Only a sweep of a job, not one that is tried or that writes elsewhere, uses its workspace.
    is_job = environment.get("GITHUB_ACTIONS") == "true" and output is None and not dry_run
    workspace = Path(environment.get("GITHUB_WORKSPACE", ".")) if is_job else None
    if workspace is not None:
        folder = open_output(workspace).folder
    else:
        folder = output or default_output(environment, f"sweep-{utc_now():%Y%m%d-%H%M%S}")
    with stop_on_signals() as stopping, filtered_log(settings, host):
        running_sweep = Sweep(
            repository=repository,
            forge=forge,
            settings=settings,
            load=lambda repository: load_settings(options, environment, repository),
            host=host,
            folder=folder,
            limits=limits,
            is_dry_run=dry_run,
            progress=progress,
            actions_run=actions_run(environment),
            log_url=job_url(environment, repository),
            stopping=stopping,
            on_result=lambda result: print_result(result, console),
        )
        rows = running_sweep.run()
    _print_report(running_sweep, environment, print_line)
    failed = stopping.is_set() or any(row.fate is SweepFate.FAILED for row in rows)
    if workspace is not None:
        state, cost = "error" if failed else "finished", f"{running_sweep.spent:.4f}"
        write_outputs(environment, {"state": state, "cost": cost, "output": OUTPUT_FOLDER})
        change_owner(folder, workspace)
    return int(failed)


def _print_report(
    sweep: Sweep, environment: Mapping[str, str], print_line: Callable[[str], None]
) -> None:
    """Print the report of a sweep that has ended, and add it to the summary of the job."""
    for line in render_sweep(sweep, "sweep.txt.j2", "").strip().splitlines():
        print_line(for_terminal(line))
    summary = render_sweep(sweep, "sweep.md.j2", sweep.settings.github_server_url)
    append_summary(environment, summary)
