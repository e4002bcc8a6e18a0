"""Whether a request that may start work does so now: what its thread, the person and the repository
had today, and how long bots have been answering each other. Decides, and nothing else.

Days are those of UTC, in which a run began.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from resolver.github.events.quota_ledger import Ceiling, LedgerRun, QuotaLedger, day_of

LEAST = 0.01
"""US dollars without which a run is not begun: it could ask nothing."""


@dataclass(frozen=True)
class QuotaBound:
    """What one thread, user or repository may have in a day: runs, and US dollars. 0: no bound."""

    runs: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class QuotaLimits:
    """All of them. chain: exchanges of bots with us on a thread without a person; 0: no bound."""

    thread: QuotaBound = QuotaBound()
    user: QuotaBound = QuotaBound()
    repository: QuotaBound = QuotaBound()
    chain: int = 0


@dataclass(frozen=True)
class QuotaRequest:
    """A request, as the guard looks at it.

    key: digest of the trigger's; thread: 0 for none; user: "" for the owner of a terminal, who has
    no ceiling of their own. wanted: US dollars that it may cost.
    since: the newest word of a person on the thread, as far as it is known; exchanges: words of
    ours on the thread after it.
    """

    key: str
    thread: int
    user: str
    bot: bool
    wanted: float
    since: datetime | None = None
    exchanges: int = 0


@dataclass(frozen=True)
class QuotaGranted:
    """It may. reserve: US dollars to set aside; left: what all ceilings leave it."""

    reserve: float
    left: float


@dataclass(frozen=True)
class QuotaExceeded:
    """It may not. until: when it may again, None where a person has to do something.

    first: whether the thread was not told so today already.
    """

    ceiling: Ceiling
    what: str
    next_step: str
    until: datetime | None = None
    first: bool = True


def decide_quota(
    ledger: QuotaLedger, asked: QuotaRequest, ceilings: QuotaLimits, now: datetime
) -> QuotaGranted | QuotaExceeded:
    """By the ledger. What stands in it of the same request, begun before, is not counted as a
    run again; what it has cost is.

    Without a ledger that can be read a person is let in, and a bot is not: nobody could tell a loop
    from work. Each run has its own limits in either case.
    """
    found = _chain(ledger, asked, ceilings) or _today(ledger, asked, ceilings, now)
    if isinstance(found, QuotaExceeded):
        told = any(
            each.thread == asked.thread and day_of(each.at) == day_of(now) and each.key != asked.key
            for each in ledger.refusals
        )
        return QuotaExceeded(
            found.ceiling, found.what, found.next_step, found.until, first=not told
        )
    return QuotaGranted(min(asked.wanted, found), found)


def _chain(ledger: QuotaLedger, asked: QuotaRequest, ceilings: QuotaLimits) -> QuotaExceeded | None:
    if not asked.bot:
        return None
    if not ledger.readable:
        return QuotaExceeded(
            "unreadable",
            "the ledger of runs (refs/resolver/ledger) can't be read, and without it a bot's "
            "request can't be told from a loop",
            "A person with write access can ask instead, which starts the ledger anew.",
        )
    depth = max(asked.exchanges, _by_bots(ledger, asked))
    if not ceilings.chain or depth < ceilings.chain:
        return None
    return QuotaExceeded(
        "chain",
        f"bots and I have answered each other {depth} times here without a person's word "
        f"between (at most {ceilings.chain})",
        "A person's comment on this thread lets it go on; the operator can raise `max_bot_chain`.",
    )


def _by_bots(ledger: QuotaLedger, asked: QuotaRequest) -> int:
    """Runs on the thread that bots have started since a person last spoke or started one."""
    runs = [run for run in ledger.runs if run.thread == asked.thread and run.key != asked.key]
    count = 0
    for run in reversed(runs):
        if not run.bot or (asked.since is not None and run.at < asked.since):
            break
        count += 1
    return count


def _today(
    ledger: QuotaLedger, asked: QuotaRequest, ceilings: QuotaLimits, now: datetime
) -> QuotaExceeded | float:
    """US dollars that are left, or the first ceiling that is reached."""
    today = [run for run in ledger.runs if day_of(run.at) == day_of(now) or run.is_at_work(now)]
    whose: list[tuple[Ceiling, str, QuotaBound, Callable[[LedgerRun], bool]]] = [
        ("thread", "this thread", ceilings.thread, lambda run: run.thread == asked.thread),
        ("repository", "this repository", ceilings.repository, lambda _: True),
    ]
    if asked.user:
        whose.insert(
            1, ("user", f"{asked.user}", ceilings.user, lambda run: run.user == asked.user)
        )
    left = float("inf")
    for ceiling, name, bound, of_it in whose:
        found = _within(ceiling, name, bound, filter(of_it, today), asked, now)
        if isinstance(found, QuotaExceeded):
            return found
        left = min(left, found)
    return left


def _within(
    ceiling: Ceiling,
    name: str,
    bound: QuotaBound,
    runs: Iterable[LedgerRun],
    asked: QuotaRequest,
    now: datetime,
) -> QuotaExceeded | float:
    """US dollars that one ceiling leaves, or what is to be told."""
    runs = list(runs)
    others = [run for run in runs if run.key != asked.key]
    own = sum(run.cost for run in runs if run.key == asked.key)
    used = sum(run.counts(now) for run in others)
    tomorrow = (now.astimezone(UTC) + timedelta(days=1)).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    free = f"Ask again from {tomorrow:%Y-%m-%d} on (00:00 UTC)"
    if bound.runs and len(others) >= bound.runs:
        had = f"{len(others)} run{'' if len(others) == 1 else 's'}"
        return QuotaExceeded(
            ceiling,
            f"{name} has had {had} today, of the {bound.runs} it may have",
            f"{free}; the operator can raise `max_runs_per_{ceiling}_day`.",
            tomorrow,
        )
    if not bound.cost:
        return float("inf")
    left = bound.cost - used - own
    if left < LEAST:
        aside = sum(run.counts(now) - run.cost for run in others)
        more = f" (${aside:.2f} of it is set aside for runs at work)" if aside else ""
        sooner = ", or when the runs at work have ended" if aside else ""
        return QuotaExceeded(
            ceiling,
            f"the runs of {name} come to ${used + own:.2f} today{more}, of the ${bound.cost:.2f} "
            "that they may cost",
            f"{free}{sooner}; the operator can raise `max_cost_per_{ceiling}_day`.",
            tomorrow,
        )
    return left
