"""Decides whether a request may start work now under the quotas.

The decision considers what the conversation, the user and the repository have used today, and how
long bots have been answering each other. It reads and writes nothing. A run counts on the UTC day
on which it began.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from resolver.github.events.quota_ledger import Ceiling, LedgerRun, QuotaLedger, day_of

MIN_RUN_COST = 0.01
"""US dollars below which a run is not started, since it could not pay for a single reply."""


@dataclass(frozen=True)
class QuotaBound:
    """The daily quota of one conversation, user or repository: runs, and US dollars. 0:
    no limit."""

    runs: int = 0
    cost: float = 0.0


MAX_BOT_CHAIN = 3
"""Number of exchanges between bots and Resolver in a conversation without a person in between."""


@dataclass(frozen=True)
class QuotaLimits:
    """The quotas of a repository."""

    thread: QuotaBound = QuotaBound()
    user: QuotaBound = QuotaBound()
    repository: QuotaBound = QuotaBound()


@dataclass(frozen=True)
class QuotaRequest:
    """A request, with what the quotas need to know about it.

    Attributes:
        key: Digest of the trigger's key.
        thread: Number of the issue or pull request; 0 for none.
        user: Normalized login; "" for the owner of a terminal, who has no quota as a user.
        bot: True for a request by a bot or a GitHub App.
        max_cost: US dollars that the run may cost.
        resumed_run: Id of the run whose log is continued; it counts what it has cost by itself.
        person_commented_at: When a person last commented in the conversation, as far as known.
        exchanges: Number of Resolver's comments in the conversation after that moment.
    """

    key: str
    thread: int
    user: str
    bot: bool
    max_cost: float
    resumed_run: str | None = None
    person_commented_at: datetime | None = None
    exchanges: int = 0


@dataclass(frozen=True)
class QuotaExceeded:
    """The request may not start work.

    Attributes:
        ceiling: The limit that refused it.
        what: What happened, for a person.
        next_step: What a person can do about it.
        until: When it may be asked again; None when a person has to act first.
    """

    ceiling: Ceiling
    what: str
    next_step: str
    until: datetime | None = None


@dataclass(frozen=True)
class QuotaUse:
    """What today's runs have used of a quota. name: whose quota it is. cost: US dollars, with what
    is `reserved` for runs in progress. max_runs, max_cost: 0 for no limit."""

    ceiling: Ceiling
    name: str
    runs: int
    max_runs: int
    cost: float
    max_cost: float
    reserved: float = 0.0


def measure_quota_use(
    runs: Iterable[LedgerRun],
    limits: QuotaLimits,
    threads: Iterable[int],
    users: Iterable[str],
    now: datetime,
) -> tuple[QuotaUse, ...]:
    """Return what today's runs have used of the quotas of these conversations and users, and of
    that of the repository."""
    today = runs_of_today(runs, now)

    def measure(ceiling: Ceiling, name: str, bound: QuotaBound, own: list[LedgerRun]) -> QuotaUse:
        cost = sum(run.counts(now) for run in own)
        reserved = cost - sum(run.cost for run in own)
        return QuotaUse(ceiling, name, len(own), bound.runs, cost, bound.cost, reserved)

    uses = []
    for thread in threads:
        name = f"#{thread}" if thread else "runs without an issue"
        own = [run for run in today if run.thread == thread]
        uses.append(measure("thread", name, limits.thread, own))
    for user in filter(None, users):
        own = [run for run in today if run.user == user]
        uses.append(measure("user", user, limits.user, own))
    return (*uses, measure("repository", "this repository", limits.repository, today))


def runs_of_today(runs: Iterable[LedgerRun], now: datetime) -> list[LedgerRun]:
    """Return the runs that count for the quotas of today: those that began today, and those in
    progress."""
    return [run for run in runs if day_of(run.at) == day_of(now) or run.is_active(now)]


def decide_quota(
    ledger: QuotaLedger, request: QuotaRequest, limits: QuotaLimits, now: datetime
) -> float | QuotaExceeded:
    """Decide by the ledger whether a request may start work. Return the US dollars that all quotas
    together still allow, or the refusal of the first quota that is reached.

    An earlier attempt of the same request is not counted as another run; its cost is counted.

    When the ledger can't be read, a person's request is granted and a bot's is refused, because a
    loop of bots could not be distinguished from work. Each run has its own limits in either case.
    """
    chain = _check_bot_chain(ledger, request)
    if chain is not None:
        return chain
    others = [run for run in ledger.runs if run.key != request.key]
    earlier = [run for run in runs_of_today(ledger.runs, now) if run.key == request.key]
    own_cost = sum(run.cost for run in earlier if run.run != request.resumed_run)
    remaining = float("inf")
    for use in measure_quota_use(others, limits, [request.thread], [request.user], now):
        exceeded = _check_quota(use, own_cost, now)
        if exceeded is not None:
            return exceeded
        if use.max_cost:
            remaining = min(remaining, use.max_cost - use.cost - own_cost)
    return remaining


def _check_bot_chain(ledger: QuotaLedger, request: QuotaRequest) -> QuotaExceeded | None:
    """Return the refusal of a bot's request that continues a chain of bots, else None."""
    if not request.bot:
        return None
    if not ledger.readable:
        return QuotaExceeded(
            "unreadable",
            "the quota ledger (refs/resolver/ledger) can't be read, and without it a bot's "
            "request can't be distinguished from a loop",
            "A person with write access can ask instead, which starts a new ledger.",
        )
    depth = max(request.exchanges, _count_bot_runs(ledger, request))
    if depth < MAX_BOT_CHAIN:
        return None
    return QuotaExceeded(
        "chain",
        f"bots and Resolver have answered each other {depth} times here without a comment by a "
        f"person in between (at most {MAX_BOT_CHAIN})",
        "A comment by a person here lifts this.",
    )


def _count_bot_runs(ledger: QuotaLedger, request: QuotaRequest) -> int:
    """Count the runs that bots started in the conversation since a person last took part in it.

    A person takes part with a comment or by starting a run.
    """
    runs = [run for run in ledger.runs if run.thread == request.thread and run.key != request.key]
    commented_at = request.person_commented_at
    count = 0
    for run in reversed(runs):
        if not run.bot or (commented_at is not None and run.at < commented_at):
            break
        count += 1
    return count


def _check_quota(use: QuotaUse, own_cost: float, now: datetime) -> QuotaExceeded | None:
    """Return the refusal of a quota that is reached, else None.

    own_cost: of earlier attempts of the request.
    """
    name = "this thread" if use.ceiling == "thread" else use.name
    tomorrow = (now.astimezone(UTC) + timedelta(days=1)).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    retry_step = f"Ask again on or after {tomorrow:%Y-%m-%d} (00:00 UTC)"
    if use.max_runs and use.runs >= use.max_runs:
        count = f"{use.runs} run{'' if use.runs == 1 else 's'}"
        what = f"{name} has had {count} today, and the limit is {use.max_runs}"
        return QuotaExceeded(use.ceiling, what, retry_step, tomorrow)
    cost = use.cost + own_cost
    if not use.max_cost or use.max_cost - cost >= MIN_RUN_COST:
        return None
    of_it = f" (${use.reserved:.2f} of it is reserved for runs in progress)" if use.reserved else ""
    sooner = ", or when the runs in progress have ended" if use.reserved else ""
    setting = "daily_budget" if use.ceiling == "repository" else "max_budget"
    return QuotaExceeded(
        use.ceiling,
        f"the runs of {name} cost ${cost:.2f} today{of_it}, of the ${use.max_cost:.2f} that they "
        "may cost",
        f"{retry_step}{sooner}; the operator can raise `{setting}`",
        tomorrow,
    )
