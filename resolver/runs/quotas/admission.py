"""Reserves a run's quota in the ledger before its work, and records its cost when it has ended.

An error of the ledger never fails a run; it is logged as a warning in the job's log.
"""

import hashlib
import logging
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from resolver.config.settings import Settings
from resolver.errors import (
    ForgeError,
    LogError,
    QuotaReached,
    ResolverError,
    RunStopped,
    WorkspaceError,
)
from resolver.events.run_log import cost_of_run
from resolver.github.client.snapshot import RepositorySnapshot, SnapshotQuery
from resolver.github.comments.report import Ending, Report
from resolver.github.events.quota_decision import (
    QuotaBound,
    QuotaExceeded,
    QuotaGranted,
    QuotaLimits,
    QuotaRequest,
    decide_quota,
)
from resolver.github.events.quota_ledger import (
    KeptLedger,
    LedgerRefusal,
    LedgerRun,
    QuotaLedger,
    day_of,
    normalize_login,
    read_ledger,
)
from resolver.github.forge import DashboardForge, Forge, LastSpeaker
from resolver.models.run import Command, Trigger, TriggerKind
from resolver.runs.quotas.dashboard import Dashboard, update_dashboard
from resolver.runs.quotas.ledger_ref import FILE, REF, AccompanyingPush, LedgerRef
from resolver.runs.resuming.archive import log_commit, obsolete_logs, runs_of_issue
from resolver.runs.stages import AcceptedRun, RunRequest, StageValues
from resolver.runs.wiring.knowledge import ORGANIZATION_FOLDERS

logger = logging.getLogger("resolver.runs.quotas")

BOOKED = frozenset(Command) - {Command.HELP, Command.STOP, Command.PAUSE, Command.PUBLISH}
"""The commands that use a model. The others cost nothing and are never refused because of a
quota."""

MOST_TIME = timedelta(days=7)
"""Longest time that a reservation is held."""

_TOLD_TODAY = re.compile(r"<!-- resolver:run key=[0-9a-f]{40} ending=ceiling\b")
"""Marker of a comment that reports a reached quota."""


def ceilings_of(settings: Settings) -> QuotaLimits:
    """Return the limits that the operator has set.

    The repository's own settings file is not used: these limits bound what its people may spend.
    """

    def cost(given: float | None, times: int) -> float:
        return settings.max_budget * times if given is None else given

    runs, costs = settings.run_quotas, settings.cost_quotas
    return QuotaLimits(
        thread=QuotaBound(runs.thread_day, cost(costs.thread_day, 10)),
        user=QuotaBound(runs.user_day, cost(costs.user_day, 20)),
        repository=QuotaBound(runs.repository_day, cost(costs.repository_day, 50)),
        chain=settings.automatic_run_limits.bot_chain,
    )


def ledger_for_run(request: RunRequest, settings: Settings) -> LedgerRef:
    """Return the ledger of the repository that a run works on."""
    server = settings.github_server_url.rstrip("/")
    url = f"{server}/{request.trigger.repository}.git"
    return LedgerRef(url, lambda: request.credential(settings), request.now)


def rerun_digest(key: str) -> str:
    """Return the digest of a trigger's key that identifies the request in the ledger."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def read_refs(request: RunRequest, forge: Forge) -> RepositorySnapshot | None:
    """Return the refs of the repository that the run works on, None if git has to read them."""
    if request.is_local:
        return None
    below = runs_of_issue(request.trigger.subject or 0)
    return forge.snapshot(SnapshotQuery(REF, FILE, below, tuple(ORGANIZATION_FOLDERS)))


def reserve_quota(
    request: RunRequest,
    settings: Settings,
    forge: Forge,
    snapshot: RepositorySnapshot | None = None,
) -> AcceptedRun:
    """Reserve the run's quota.

    snapshot: the repository's refs, if they were read.

    Raises QuotaReached, marked silent if the conversation was notified today already.
    """
    board = forge.board() if _is_booked(request) else None
    ceilings = ceilings_of(settings)
    if board is None or (ceilings == QuotaLimits() and not settings.dashboard):
        return AcceptedRun(snapshot=snapshot)
    now = request.now()
    asked = _asked(request, settings, board)
    keep = ledger_for_run(request, settings)

    # Deciding and writing happen in one compare-and-swap: if another run's push comes first, `book`
    # is called again with that run's entry in the ledger, so two runs can't both take the last of a
    # quota.
    def book(ledger: QuotaLedger) -> tuple[QuotaLedger | None, _Decided]:
        decision = decide_quota(ledger, asked, ceilings, now)
        if isinstance(decision, QuotaGranted):
            entry = _entry(request, settings, asked, decision, ledger, now)
            booked = ledger.with_run(entry)
            return booked, _Decided(booked, decision, entry)
        if not decision.is_first or decision.ceiling == "unreadable":
            return None, _Decided(ledger, decision)
        refused = ledger.with_refusal(_refusal(request, asked, decision, now))
        return refused, _Decided(refused, decision)

    # If the ledger can't be written, there is no entry and no record of refusals. The decision is
    # then made from what can be read, and the conversation's comments show if a refusal was posted
    # today.
    told, kept = False, None
    try:
        decided, kept = keep.change_from(_ledger_in(snapshot, now), book)
    except (WorkspaceError, ForgeError) as error:
        logger.warning("the quota ledger could not be updated: %s", error.what)
        ledger = _as_read(keep)
        decided = _Decided(ledger, decide_quota(ledger, asked, ceilings, now))
        if isinstance(decided.decision, QuotaExceeded):
            told = _told_today(request, board, now)
    decision = decided.decision
    if isinstance(decision, QuotaExceeded):
        reached = QuotaReached(decision.what, decision.next_step)
        reached.is_silent = told or not decision.is_first
        # Showing the dashboard may write its issue number to the ledger, so the ledger must be
        # readable.
        if not reached.is_silent and decided.ledger.readable:
            _show(request, settings, board, keep, decided.ledger)
        raise reached
    return AcceptedRun(decided.entry, decision.remaining, kept if decided.entry else None, snapshot)


def _ledger_in(snapshot: RepositorySnapshot | None, now: datetime) -> KeptLedger | None:
    """Return the ledger in the snapshot, None if it has to be fetched.

    An outdated one does no harm: the push that names its tip is refused then.
    """
    if snapshot is None or not snapshot.tip:
        return None
    if not snapshot.ref_tip:
        return KeptLedger(QuotaLedger(), is_sha256=len(snapshot.tip) == 64)
    if snapshot.content is None:
        return None
    return KeptLedger(read_ledger(snapshot.content.encode(), now), snapshot.ref_tip)


@dataclass(frozen=True)
class _Decided:
    """The ledger with a decision. entry: that of the run, if it is admitted and written."""

    ledger: QuotaLedger
    decision: QuotaGranted | QuotaExceeded
    entry: LedgerRun | None = None


def show_at_work(
    request: RunRequest, settings: Settings, accepted: AcceptedRun, forge: Forge
) -> None:
    """Show the run on the dashboard. An error is logged as a warning."""
    board = forge.board() if settings.dashboard and accepted.reservation else None
    if board is not None:
        keep = ledger_for_run(request, settings)
        ledger = _as_read(keep)
        if ledger.readable:
            _show(request, settings, board, keep, ledger)


def record_cost(values: StageValues, report: Report, forge: Forge) -> bool:
    """Record the cost and the ending of the run in the ledger, and archive its log with it.

    Returns True if the log was archived. Never raises.
    """
    request, settings = values.request, values.settings
    reserved = values.accepted.reservation if values.accepted else None
    # A signal may have interrupted `reserve_quota` after the reservation was pushed and before it
    # was returned.
    interrupted = values.accepted is None and report.ending is Ending.STOPPED
    if reserved is None and not (interrupted and _is_booked(request)):
        return False
    key = reserved.key if reserved else rerun_digest(request.trigger.key)
    cost, unpriced = 0.0, 0
    if values.log is not None:
        cost, unpriced = cost_of_run(values.log.state.events, request.run)
    pull = values.publication.pull_request
    now = request.now()

    def close(ledger: QuotaLedger) -> tuple[QuotaLedger | None, QuotaLedger]:
        known = ledger.run_of(key) or reserved
        if known is None or (reserved is None and known.run != request.run):
            return None, ledger
        before = reserved or known
        settled = known.model_copy(
            update={
                "ending": report.ending.value,
                "cost": min(before.cost + cost, 1_000_000.0),
                "unpriced": before.unpriced + unpriced,
                "reserved": 0.0,
                "seconds": max(0.0, round((now - before.at).total_seconds(), 1)),
                "opened": (pull.number or 0) if pull else 0,
            }
        )
        after = ledger.with_run(settled)
        return after, after

    keep = ledger_for_run(request, settings)
    archived = False
    try:
        before = values.accepted.ledger if values.accepted else None
        more = _log_of(values)
        ledger, kept = keep.change_from(before, close, more)
        # Without a change of the ledger, nothing was pushed.
        archived = bool(more.commits) and kept.pushed
        board = forge.board()
        if board is not None:
            _show(request, settings, board, keep, ledger)
    except (ResolverError, RunStopped) as error:
        logger.warning(
            "the cost of run %s could not be recorded in the quota ledger: %s",
            request.run,
            error.what,
        )
    return archived


def _log_of(values: StageValues) -> AccompanyingPush:
    """Return what archives the run's log and removes old ones; nothing if it is not archived."""
    request = values.current_request
    issue, snapshot = request.trigger.subject, values.accepted.snapshot if values.accepted else None
    if not request.archives_log or values.log is None or issue is None or snapshot is None:
        return AccompanyingPush()
    try:
        commit = log_commit(request.output.folder, issue, request.run)
    except LogError as error:
        logger.info("%s", error.what)  # archiving it by itself will say so
        return AccompanyingPush()
    old = obsolete_logs(issue, request.run, snapshot.ref_names)
    return AccompanyingPush((commit,), old)


def _show(
    request: RunRequest,
    settings: Settings,
    board: DashboardForge,
    keep: LedgerRef,
    ledger: QuotaLedger,
) -> None:
    if settings.dashboard:
        update_dashboard(Dashboard(board, keep, request.run, settings.mention), ledger)


def _is_booked(request: RunRequest) -> bool:
    """Return True if quotas apply to the request."""
    trigger = request.trigger
    return request.publish and trigger.kind is not TriggerKind.LOCAL and trigger.command in BOOKED


def _asked(request: RunRequest, settings: Settings, board: DashboardForge) -> QuotaRequest:
    trigger = request.trigger
    since, exchanges = None, 0
    counts_chain = bool(settings.automatic_run_limits.bot_chain)
    if trigger.actor.is_bot and trigger.number is not None and counts_chain:
        since, exchanges = _chain(trigger, board)
    return QuotaRequest(
        key=rerun_digest(trigger.key),
        thread=trigger.subject or 0,
        user=normalize_login(trigger.actor.login),
        bot=trigger.actor.is_bot,
        max_cost=settings.max_budget,
        person_commented_at=since,
        exchanges=exchanges,
    )


def _chain(trigger: Trigger, board: DashboardForge) -> tuple[datetime | None, int]:
    """Return when a person last commented, and how many comments Resolver has written since.

    Bots that answer each other would continue forever. Raises ForgeError.
    """
    assert trigger.number is not None
    exchanges = 0
    for voice in board.voices(trigger.number):
        if not (voice.is_bot or voice.own):
            return voice.at, exchanges
        exchanges += voice.own
    return None, exchanges


def _entry(
    request: RunRequest,
    settings: Settings,
    asked: QuotaRequest,
    decision: QuotaGranted,
    ledger: QuotaLedger,
    now: datetime,
) -> LedgerRun:
    """Return the run's entry. A request that is started again keeps the cost of its earlier
    attempts."""
    known = ledger.run_of(asked.key)
    again = known is not None and not (known.run == request.run and request.resume)
    # A request that is started again on another day counts for that day.
    began = known.at if known and day_of(known.at) == day_of(now) else now
    return LedgerRun(
        key=asked.key,
        run=request.run,
        thread=asked.thread,
        number=request.trigger.number or 0,
        pull_request=request.trigger.is_pull_request,
        user=asked.user,
        bot=asked.bot,
        at=began,
        until=min(now + settings.longest_run, began + MOST_TIME),
        reserved=min(decision.reserve, 1_000_000.0),
        cost=known.cost if known and again else 0.0,
        unpriced=known.unpriced if known and again else 0,
        attempts=min(known.attempts + 1, 10**6) if known else 1,
        job=int(request.actions_run.partition(".")[0] or 0),
    )


def _refusal(
    request: RunRequest, asked: QuotaRequest, decision: QuotaExceeded, now: datetime
) -> LedgerRefusal:
    return LedgerRefusal(
        key=asked.key,
        thread=asked.thread,
        number=request.trigger.number or 0,
        user=asked.user,
        at=now,
        ceiling=decision.ceiling,
    )


def _as_read(keep: LedgerRef) -> QuotaLedger:
    """Return the ledger for a repository that can't be written; an unreadable one if it can't be
    read."""
    try:
        return keep.read()
    except (WorkspaceError, ForgeError) as error:
        logger.warning("%s", error.what)
        return QuotaLedger(readable=False)


def _told_today(request: RunRequest, board: DashboardForge, now: datetime) -> bool:
    """Return True if the conversation has a comment of today that reports a reached quota."""
    number = request.trigger.number

    def told(voice: LastSpeaker) -> bool:
        today = day_of(voice.at) == day_of(now)
        return voice.own and today and _TOLD_TODAY.match(voice.body) is not None

    try:
        return number is not None and any(told(voice) for voice in board.voices(number))
    except ForgeError as error:
        logger.warning("%s", error.what)
        return True  # rather no comment than one for every request
