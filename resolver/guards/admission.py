"""A run in the ledger: booked before its work where the ceilings leave room for it, settled when it
has ended. The ledger never costs a run its life; what it can't do is said in the job's log.
"""

import hashlib
import logging
import re
from datetime import datetime, timedelta

from resolver.errors import CeilingReached, ForgeError, ResolverError, Stopped, WorkspaceError
from resolver.forge.base import Forge
from resolver.forge.board import Board, Voice
from resolver.guards.dashboard import Dashboard, show
from resolver.guards.keeping import LedgerRef
from resolver.model import Command, Trigger, TriggerKind
from resolver.record import Job, Record
from resolver.runlog import spent_by
from resolver.settings import Settings
from resolver.triggers.guard import Admitted, Asked, Bound, Ceilings, TooMuch, decide
from resolver.triggers.ledger import Ledger, Refusal, Run, day_of, login_in_ledger

logger = logging.getLogger("resolver.guards")

BOOKED = frozenset(Command) - {Command.HELP, Command.STOP, Command.PAUSE, Command.PUBLISH}
"""What a model is asked for; the rest costs nothing and is never refused for what others cost."""

MOST_TIME = timedelta(days=7)

_TOLD_TODAY = re.compile(r"<!-- resolver:run key=[0-9a-f]{40} ending=ceiling\b")


def ceilings_of(settings: Settings) -> Ceilings:
    """As the operator has set them. What a repository's own file says is not asked: they bound
    what the repository's people may spend."""

    def cost(given: float | None, times: int) -> float:
        return settings.max_budget * times if given is None else given

    return Ceilings(
        thread=Bound(settings.max_runs_per_thread_day, cost(settings.max_cost_per_thread_day, 10)),
        user=Bound(settings.max_runs_per_user_day, cost(settings.max_cost_per_user_day, 20)),
        repository=Bound(
            settings.max_runs_per_repository_day, cost(settings.max_cost_per_repository_day, 50)
        ),
        chain=settings.max_bot_chain,
    )


def ledger_of(record: Record) -> LedgerRef:
    """The ledger of the repository that a run works on."""
    server = record.settings.github_server_url.rstrip("/")
    url = f"{server}/{record.job.trigger.repository}.git"
    return LedgerRef(url, record.credential, record.job.now)


def digest(key: str) -> str:
    """How a trigger's key is written in the ledger."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def admit(record: Record, forge: Forge) -> None:
    """Book the run. Raises CeilingReached, with the record silent where the thread was told
    today already."""
    board = forge.board() if _is_booked(record.job) else None
    ceilings = ceilings_of(record.settings)
    if board is None or (ceilings == Ceilings() and not record.settings.dashboard):
        return
    now = record.job.now()
    asked = _asked(record, board)
    keep = ledger_of(record)

    def book(ledger: Ledger) -> tuple[Ledger | None, tuple[Ledger, Admitted | TooMuch]]:
        decision = decide(ledger, asked, ceilings, now)
        if isinstance(decision, Admitted):
            # Noted before it is pushed: a signal may come in between, and the end settles it.
            record.booked = _entry(record, asked, decision, ledger, now)
            booked = ledger.with_run(record.booked)
            return booked, (booked, decision)
        record.booked = None
        if not decision.first or decision.ceiling == "unreadable":
            return None, (ledger, decision)
        refused = ledger.with_refusal(_refusal(record, asked, decision, now))
        return refused, (refused, decision)

    try:
        (ledger, decision), kept = keep.change_from(None, book)
        record.booked_ledger = kept if record.booked else None
    except (WorkspaceError, ForgeError) as error:
        logger.warning("the ledger of runs could not be kept: %s", error.what)
        record.booked = None
        ledger = _as_read(keep)
        decision = decide(ledger, asked, ceilings, now)
        if isinstance(decision, TooMuch) and _told_today(record, board, now):
            record.silent = True
    if isinstance(decision, TooMuch):
        record.silent = record.silent or not decision.first
        if not record.silent and ledger.readable:  # to show it is to write it
            _show(record, board, keep, ledger)
        raise CeilingReached(decision.what, decision.next_step)
    record.ceilings_left = decision.left


def show_at_work(record: Record, forge: Forge) -> None:
    """Show the dashboard with the run on it. What goes wrong is a warning."""
    board = forge.board() if record.settings.dashboard and record.booked else None
    if board is not None:
        keep = ledger_of(record)
        ledger = _as_read(keep)
        if ledger.readable:
            _show(record, board, keep, ledger)


def settle(record: Record, forge: Forge) -> None:
    """Write down what the run has cost and how it ended. Never raises."""
    booked = record.booked
    if booked is None:
        return
    ending = record.report().ending.value
    cost, unpriced = 0.0, 0
    if record.log is not None:
        cost, unpriced = spent_by(record.log.state.events, record.job.run)
    pull = record.publication.pull_request
    now = record.job.now()

    def close(ledger: Ledger) -> tuple[Ledger, Ledger]:
        known = ledger.run_of(booked.key) or booked
        settled = known.model_copy(
            update={
                "ending": ending,
                "cost": min(booked.cost + cost, 1_000_000.0),
                "unpriced": booked.unpriced + unpriced,
                "reserved": 0.0,
                "seconds": max(0.0, round((now - booked.at).total_seconds(), 1)),
                "opened": (pull.number or 0) if pull else 0,
            }
        )
        after = ledger.with_run(settled)
        return after, after

    keep = ledger_of(record)
    try:
        ledger, _ = keep.change_from(record.booked_ledger, close)
        board = forge.board()
        if board is not None:
            _show(record, board, keep, ledger)
    except (ResolverError, Stopped) as error:
        logger.warning("the cost of run %s could not be booked: %s", record.job.run, error.what)


def _show(record: Record, board: Board, keep: LedgerRef, ledger: Ledger) -> None:
    if record.settings.dashboard:
        show(Dashboard(board, keep, record.job.run, record.settings.mention), ledger)


def _is_booked(job: Job) -> bool:
    trigger = job.trigger
    return job.publish and trigger.kind is not TriggerKind.LOCAL and trigger.command in BOOKED


def _asked(record: Record, board: Board) -> Asked:
    trigger, settings = record.job.trigger, record.settings
    since, exchanges = None, 0
    if trigger.actor.is_bot and trigger.number is not None and settings.max_bot_chain:
        since, exchanges = _chain(trigger, board)
    return Asked(
        key=digest(trigger.key),
        thread=trigger.subject or 0,
        user=login_in_ledger(trigger.actor.login),
        bot=trigger.actor.is_bot,
        wanted=settings.max_budget,
        since=since,
        exchanges=exchanges,
    )


def _chain(trigger: Trigger, board: Board) -> tuple[datetime | None, int]:
    """When a person last spoke on the thread, and how often we did since. Raises ForgeError."""
    assert trigger.number is not None
    exchanges = 0
    for voice in board.voices(trigger.number):
        if not (voice.is_bot or voice.own):
            return voice.at, exchanges
        exchanges += voice.own
    return None, exchanges


def _entry(record: Record, asked: Asked, decision: Admitted, ledger: Ledger, now: datetime) -> Run:
    """The run's entry; begun again, it keeps what it has cost before."""
    job, settings = record.job, record.settings
    known = ledger.run_of(asked.key)
    again = known is not None and not (known.run == job.run and job.resume)
    # A request that is begun again on another day counts for that day.
    began = known.at if known and day_of(known.at) == day_of(now) else now
    return Run(
        key=asked.key,
        run=job.run,
        thread=asked.thread,
        number=job.trigger.number or 0,
        pull_request=job.trigger.is_pull_request,
        user=asked.user,
        bot=asked.bot,
        at=began,
        until=min(now + settings.longest_run, began + MOST_TIME),
        reserved=min(decision.reserve, 1_000_000.0),
        cost=known.cost if known and again else 0.0,
        unpriced=known.unpriced if known and again else 0,
        attempts=min(known.attempts + 1, 10**6) if known else 1,
        job=int(job.actions_run.partition(".")[0] or 0),
    )


def _refusal(record: Record, asked: Asked, decision: TooMuch, now: datetime) -> Refusal:
    return Refusal(
        key=asked.key,
        thread=asked.thread,
        number=record.job.trigger.number or 0,
        user=asked.user,
        at=now,
        ceiling=decision.ceiling,
    )


def _as_read(keep: LedgerRef) -> Ledger:
    """What can be read where nothing can be written."""
    try:
        return keep.read()
    except (WorkspaceError, ForgeError) as error:
        logger.warning("%s", error.what)
        return Ledger(readable=False)


def _told_today(record: Record, board: Board, now: datetime) -> bool:
    """Whether the thread was told of a ceiling today, by its comments."""
    number = record.job.trigger.number

    def told(voice: Voice) -> bool:
        today = day_of(voice.at) == day_of(now)
        return voice.own and today and _TOLD_TODAY.match(voice.body) is not None

    try:
        return number is not None and any(told(voice) for voice in board.voices(number))
    except ForgeError as error:
        logger.warning("%s", error.what)
        return True  # better no word than one a request
