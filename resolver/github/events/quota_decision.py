"""Decide whether a request may start work now under the quotas.

The decision considers what the conversation, the user and the repository have used today, and how
long bots have been answering each other. It reads and writes nothing. A run counts on the UTC day
on which it began.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from resolver.github.events.quota_ledger import Ceiling, LedgerRun, QuotaLedger, day_of

LEAST = 0.01
"""US dollars below which a run is not started, since it could not pay for a single reply."""


@dataclass(frozen=True)
class QuotaBound:
    """The daily quota of one conversation, user or repository: runs, and US dollars. 0:
    no limit."""

    runs: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class QuotaLimits:
    """The quotas of a repository.

    `chain` is the number of exchanges between bots and Resolver in a conversation without a person;
    0 means no limit.
    """

    thread: QuotaBound = QuotaBound()
    user: QuotaBound = QuotaBound()
    repository: QuotaBound = QuotaBound()
    chain: int = 0


@dataclass(frozen=True)
class QuotaRequest:
    """A request, with what the quotas need to know about it.

    Attributes:
        key: Digest of the trigger's key.
        thread: Number of the issue or pull request; 0 for none.
        user: Normalized login; "" for the owner of a terminal, who has no quota as a user.
        bot: True for a request by a bot or a GitHub App.
        wanted: US dollars that the run may cost.
        since: When a person last commented in the conversation, as far as known.
        exchanges: Number of Resolver's comments in the conversation after that moment.
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
    """The request may start work.

    `reserve` is the amount to reserve in US dollars, `left` what all quotas together still allow.
    """

    reserve: float
    left: float


@dataclass(frozen=True)
class QuotaExceeded:
    """The request may not start work.

    Attributes:
        ceiling: The limit that refused it.
        what: What happened, for a person.
        next_step: What a person can do about it.
        until: When it may be asked again; None when a person has to act first.
        first: False when a refusal was already reported in the conversation today.
    """

    ceiling: Ceiling
    what: str
    next_step: str
    until: datetime | None = None
    first: bool = True


def decide_quota(
    ledger: QuotaLedger, asked: QuotaRequest, ceilings: QuotaLimits, now: datetime
) -> QuotaGranted | QuotaExceeded:
    """Decide by the ledger whether a request may start work.

    An earlier attempt of the same request is not counted as another run; its cost is counted.

    When the ledger can't be read, a person's request is granted and a bot's is refused, because a
    loop of bots could not be told from work. Each run has its own limits in either case.
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
    """Return the refusal of a bot's request that continues a chain of bots, else None."""
    if not asked.bot:
        return None
    if not ledger.readable:
        return QuotaExceeded(
            "unreadable",
            "the quota ledger (refs/resolver/ledger) can't be read, and without it a bot's "
            "request can't be distinguished from a loop",
            "A person with write access can ask instead, which starts a new ledger.",
        )
    depth = max(asked.exchanges, _by_bots(ledger, asked))
    if not ceilings.chain or depth < ceilings.chain:
        return None
    return QuotaExceeded(
        "chain",
        f"bots and Resolver have answered each other {depth} times here without a comment by a "
        f"person in between (at most {ceilings.chain})",
        "A comment by a person here lifts this; the operator can raise `automatic_run_limits: "
        "{bot_chain: ...}`.",
    )


def _by_bots(ledger: QuotaLedger, asked: QuotaRequest) -> int:
    """Count the runs that bots started in the conversation since a person last took part in it.

    A person takes part with a comment or by starting a run.
    """
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
    """Return the US dollars left today, or the refusal of the first quota that is reached."""
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
    """Return the US dollars that one quota leaves, or its refusal."""
    runs = list(runs)
    others = [run for run in runs if run.key != asked.key]
    own = sum(run.cost for run in runs if run.key == asked.key)
    used = sum(run.counts(now) for run in others)
    tomorrow = (now.astimezone(UTC) + timedelta(days=1)).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    free = f"Ask again on or after {tomorrow:%Y-%m-%d} (00:00 UTC)"
    if bound.runs and len(others) >= bound.runs:
        had = f"{len(others)} run{'' if len(others) == 1 else 's'}"
        return QuotaExceeded(
            ceiling,
            f"{name} has had {had} today, and the limit is {bound.runs}",
            f"{free}; the operator can raise `run_quotas: {{{ceiling}_day: ...}}`.",
            tomorrow,
        )
    if not bound.cost:
        return float("inf")
    left = bound.cost - used - own
    if left < LEAST:
        aside = sum(run.counts(now) - run.cost for run in others)
        more = f" (${aside:.2f} of it is reserved for runs in progress)" if aside else ""
        sooner = ", or when the runs in progress have ended" if aside else ""
        return QuotaExceeded(
            ceiling,
            f"the runs of {name} cost ${used + own:.2f} today{more}, of the ${bound.cost:.2f} "
            "that they may cost",
            f"{free}{sooner}; the operator can raise `cost_quotas: {{{ceiling}_day: ...}}`.",
            tomorrow,
        )
    return left
