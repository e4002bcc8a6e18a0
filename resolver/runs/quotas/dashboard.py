"""The dashboard: one issue that shows the content of the ledger and is rewritten after each run.

It contains no text from outside, only numbers, times, logins and Resolver's own templates. An error
never fails a run; it is logged as a warning in the job's log.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice

from resolver.config.templates import render
from resolver.errors import ResolverError, WorkspaceError
from resolver.github.comments.markers import DASHBOARD
from resolver.github.events.dashboard_boxes import RETRY, STOP, render_box
from resolver.github.events.quota_ledger import (
    LedgerPlace,
    LedgerRefusal,
    LedgerRun,
    LedgerSums,
    QuotaLedger,
    day_of,
)
from resolver.github.forge import DashboardForge, DashboardIssue
from resolver.github.text.markdown import code_span
from resolver.storage.ledger_ref import LedgerRef
from resolver.trace.plain import duration, money

logger = logging.getLogger("resolver.runs.quotas")

TITLE = "Resolver's dashboard"

MAX_ROWS = 20
"""Maximum number of runs and refusals that are shown; the ledger has more."""

MAX_RETRY_BOXES = 10
"""Maximum number of unfinished runs that are shown with a box to retry them."""

CLAIM_DURATION = timedelta(minutes=2)
"""Time for which other runs wait for the run that has claimed the creation of the issue."""

MAX_REWRITES = 3
"""Maximum number of times that the issue is rewritten because the ledger has changed meanwhile."""

LOST = "lost"
"""Ending of a run that never recorded one."""

_ENDING_TEXTS = {
    "pull_request": ("✅", "pull request"),
    "no_change": ("⚪", "no change"),
    "answer": ("✅", "answered"),
    "review": ("✅", "reviewed"),
    "rejected": ("⚪", "declined"),
    "limit": ("🟡", "reached a limit"),
    "stuck": ("🟡", "got stuck"),
    "stopped": ("🟡", "was stopped"),
    "waiting": ("🟡", "waits for an answer"),
    "confirmation": ("🟡", "waits for approval"),
    "policy": ("🔴", "violated the policy"),
    "refused": ("🔴", "was refused"),
    "over_budget": ("🔴", "exceeded the budget"),
    "error": ("🔴", "failed"),
    LOST: ("🔴", "ended unexpectedly"),
}
_RETRYABLE_ENDINGS = frozenset({"limit", "stuck", "stopped", "over_budget", "error", LOST})
"""Endings after which a retry may succeed without another message to the agent."""

_QUOTA_NAMES = {
    "thread": "daily quota of the issue or PR",
    "user": "daily quota of the account",
    "repository": "daily quota of the repository",
    "chain": "bots answering each other",
    "unreadable": "quota ledger unreadable",
}


@dataclass(frozen=True)
class LedgerTotals:
    """The totals of a period: number of runs, their cost and number of refused requests."""

    runs: str
    cost: str
    refused: str


@dataclass(frozen=True)
class RunRow:
    """A run on the dashboard.

    box: marker of the box that stops or retries it; "" if it has none.
    conversation: link to its issue or pull request. pull_request: link to the one that it opened.
    started, ending, duration: when it started, how it ended and how long it took.
    job_url: page of the job that executed it.
    stopped_by: who requested that it stops; "" for nobody.
    """

    box: str
    conversation: str
    requester: str
    started: str
    symbol: str
    ending: str
    duration: str
    cost: str
    pull_request: str
    job_url: str
    stopped_by: str


@dataclass(frozen=True)
class RefusalRow:
    """A refused request on the dashboard. conversation: link to its issue or pull request."""

    conversation: str
    requester: str
    time: str
    reason: str


@dataclass(frozen=True)
class DashboardContent:
    """The content of the dashboard issue.

    today, month: totals of today and of this calendar month, whose name is `month_name`.
    unpriced: number of replies of models in this month whose price is unknown.
    active, retryable, ended: runs in progress, those with a box to retry them, and those that have
    ended.
    """

    mention: str
    now: str
    today: LedgerTotals
    month: LedgerTotals
    month_name: str
    unpriced: int
    active: tuple[RunRow, ...]
    retryable: tuple[RunRow, ...]
    ended: tuple[RunRow, ...]
    refusals: tuple[RefusalRow, ...]


@dataclass(frozen=True)
class Dashboard:
    """The dashboard issue of one repository.

    run: id of the run that updates it. mention: name by which people address Resolver.
    """

    board: DashboardForge
    ledger_ref: LedgerRef
    run: str
    mention: str

    def show(self, ledger: QuotaLedger) -> None:
        """Write the issue, and write it again if the ledger changed meanwhile.

        The last run that writes has therefore read the newest ledger. Raises ForgeError or
        WorkspaceError.
        """
        for _ in range(MAX_REWRITES):
            issue, ledger = self._find_or_create(ledger)
            if issue is None:
                return  # another run creates the issue and writes it
            now = self.ledger_ref.now()
            self.board.rewrite(issue.number, dashboard_body(ledger, self.mention, now))
            latest = self.ledger_ref.read()
            if latest == ledger:
                return
            ledger = latest

    def _find_or_create(self, ledger: QuotaLedger) -> tuple[DashboardIssue | None, QuotaLedger]:
        """Return the issue, created if there is none, and the ledger that contains its number."""
        number = ledger.place.number if ledger.place else 0
        existing = self.board.dashboard(number) if number else None
        if existing is not None:
            return existing, ledger
        try:
            # GitHub can't create an issue only if it does not exist, so the right to create it is
            # claimed in the ledger first. Two runs that end at the same time would create two
            # dashboards otherwise.
            ledger, may_create = self.ledger_ref.change(
                lambda current: self._claim_creation(current, number)
            )
        except WorkspaceError as error:
            logger.warning("%s", error.what)
            may_create = True
        if not may_create:
            place = ledger.place
            return (self.board.dashboard(place.number) if place else None), ledger
        issue = self.board.find()
        if issue is None:
            body = dashboard_body(ledger, self.mention, self.ledger_ref.now())
            issue = DashboardIssue(self.board.create(TITLE, body), body)
        return issue, self._record_number(ledger, issue.number)

    def _claim_creation(
        self, ledger: QuotaLedger, missing_number: int
    ) -> tuple[QuotaLedger | None, tuple[QuotaLedger, bool]]:
        """Return the changed ledger, and (the ledger, True if this run is to create the issue).

        missing_number: number of an issue that is not the dashboard any more; 0 if there was none.
        """
        place, now = ledger.place, self.ledger_ref.now()
        if place is not None and place.number not in {0, missing_number}:
            return None, (ledger, False)
        claimed_by = place.claimed_by if place and not place.number and now < place.until else ""
        if claimed_by not in {"", self.run}:
            return None, (ledger, False)
        claimed = replace(
            ledger, place=LedgerPlace(claimed_by=self.run, until=now + CLAIM_DURATION)
        )
        return claimed, (claimed, True)

    def _record_number(self, ledger: QuotaLedger, number: int) -> QuotaLedger:
        """Return the ledger with the number of the dashboard issue."""

        def record(current: QuotaLedger) -> tuple[QuotaLedger, QuotaLedger]:
            updated = replace(
                current, place=LedgerPlace(number=number, until=self.ledger_ref.now())
            )
            return updated, updated

        try:
            return self.ledger_ref.change(record)
        except WorkspaceError as error:
            logger.warning("%s", error.what)
            return ledger


def update_dashboard(dashboard: Dashboard, ledger: QuotaLedger) -> None:
    """Show the ledger on the dashboard. An error is logged as a warning."""
    try:
        dashboard.show(ledger)
    except ResolverError as error:
        logger.warning("the dashboard could not be written: %s", error.what)


def dashboard_body(ledger: QuotaLedger, mention: str, now: datetime) -> str:
    """Return the text of the issue, with its marker."""
    runs = list(reversed(ledger.runs))
    today, month = ledger.sums(day_of(now)), ledger.sums(day_of(now)[:7])
    refusals = list(reversed(ledger.refusals))[:MAX_ROWS]
    content = DashboardContent(
        mention=code_span(mention),
        now=_time(now),
        today=_totals(today),
        month=_totals(month),
        month_name=f"{now.astimezone(UTC):%B %Y}",
        unpriced=month.unpriced,
        active=_rows((run for run in runs if run.is_active(now)), STOP, now, MAX_ROWS),
        retryable=_rows(_runs_to_retry(runs, now), RETRY, now, MAX_RETRY_BOXES),
        ended=_rows((run for run in runs if not run.is_active(now)), "", now, MAX_ROWS),
        refusals=tuple(_refusal_row(refusal) for refusal in refusals),
    )
    text = render("comments/dashboard.md.j2", content)
    return f"{DASHBOARD}\n\n{text.strip()}\n"


def _runs_to_retry(runs: Iterable[LedgerRun], now: datetime) -> Iterable[LedgerRun]:
    """Yield the newest run of each conversation if a retry may help. runs: newest first."""
    conversations = set()
    for run in runs:
        if run.thread and run.thread not in conversations:
            conversations.add(run.thread)
            if not run.is_active(now) and (run.ending or LOST) in _RETRYABLE_ENDINGS:
                yield run


def _rows(
    runs: Iterable[LedgerRun], action: str, now: datetime, max_rows: int
) -> tuple[RunRow, ...]:
    return tuple(_row(run, action, now) for run in islice(runs, max_rows))


def _row(run: LedgerRun, action: str, now: datetime) -> RunRow:
    ending = run.ending or (LOST if not run.is_active(now) else "")
    symbol, ending_text = _ENDING_TEXTS.get(ending, ("⚪", "ended"))
    number = run.number or run.thread
    return RunRow(
        box=render_box(action, run) if action else "",
        conversation=_conversation_link(number, pull_request=run.pull_request),
        requester=_login(run.user),
        started=_without_breaks(_time(run.at)),
        symbol=symbol,
        ending=ending_text,
        duration=_without_breaks(_duration(run.seconds)) if run.ending else "",
        cost="unknown" if ending == LOST else _cost(run.cost, run.unpriced),
        pull_request=f"[#{run.opened}](../pull/{run.opened})" if run.opened else "",
        job_url=f"../actions/runs/{run.job}" if run.job else "",
        stopped_by=_login(run.stop_by) if run.stop_by else "",
    )


def _refusal_row(refusal: LedgerRefusal) -> RefusalRow:
    return RefusalRow(
        conversation=_conversation_link(refusal.number or refusal.thread),
        requester=_login(refusal.user),
        time=_time(refusal.at),
        reason=_QUOTA_NAMES[refusal.ceiling],
    )


def _conversation_link(number: int, *, pull_request: bool = False) -> str:
    """Return a relative link to the issue or pull request.

    An absolute URL would add a cross-reference to the timeline of the other issue.
    """
    kind = "pull" if pull_request else "issues"
    return f"[#{number}](../{kind}/{number})" if number else "no conversation"


def _login(login: str) -> str:
    return code_span(login) if login else "the command line"


def _cost(cost: float, unpriced: int = 0) -> str:
    """Return the cost, in cents if it is large enough for them."""
    known = f"${cost:,.2f}" if cost >= 0.1 else money(cost)
    return f"{known} + unknown" if unpriced else known


def _duration(seconds: float) -> str:
    """Return the duration in whole seconds, or in whole minutes if it is longer than ten
    minutes."""
    return duration(round(seconds / 60) * 60 if seconds > 600 else round(seconds))


def _without_breaks(text: str) -> str:
    """Return the text with non-breaking spaces, so that it stays on one line of a narrow table
    cell."""
    return text.replace(" ", "\u00a0")


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%d %b %H:%M}"


def _totals(sums: LedgerSums) -> LedgerTotals:
    return LedgerTotals(f"{sums.runs:,}", _cost(sums.cost), f"{sums.refused:,}")
