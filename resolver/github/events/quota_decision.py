"""Decides whether a request may start work now under the quotas.

The decision considers what the conversation, the user and the repository have used today, and how
long bots have been answering each other. It reads and writes nothing. A run counts on the UTC day
on which it began.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

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
class QuotaGranted:
    """The request may start work.

    `reserve` is the amount to reserve in US dollars, `remaining` what all quotas together still
    allow.
    """

    reserve: float
    remaining: float


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


def decide_quota(
    ledger: QuotaLedger, request: QuotaRequest, limits: QuotaLimits, now: datetime
) -> QuotaGranted | QuotaExceeded:
    """Decide by the ledger whether a request may start work.

    An earlier attempt of the same request is not counted as another run; its cost is counted.

    When the ledger can't be read, a person's request is granted and a bot's is refused, because a
    loop of bots could not be distinguished from work. Each run has its own limits in either case.
    """
    result = _check_bot_chain(ledger, request) or _check_daily_quotas(ledger, request, limits, now)
    if isinstance(result, QuotaExceeded):
        return result
    return QuotaGranted(min(request.max_cost, result), result)


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


@dataclass(frozen=True)
class DailyQuota:
    """One quota of the day. name: whose quota it is, for a message."""

    ceiling: Ceiling
    name: str
    bound: QuotaBound
    includes: Callable[[LedgerRun], bool]


def daily_quotas(
    limits: QuotaLimits, threads: Iterable[int], users: Iterable[str]
) -> Iterator[DailyQuota]:
    """Yield the quotas of these conversations and users, and that of the repository."""
    for thread in threads:
        name = f"#{thread}" if thread else "runs without an issue"
        yield DailyQuota("thread", name, limits.thread, partial(_is_in_thread, thread))
    for user in filter(None, users):
        yield DailyQuota("user", user, limits.user, partial(_is_by_user, user))
    yield DailyQuota("repository", "this repository", limits.repository, lambda _: True)


def _is_in_thread(thread: int, run: LedgerRun) -> bool:
    return run.thread == thread


def _is_by_user(user: str, run: LedgerRun) -> bool:
    return run.user == user


def runs_of_today(ledger: QuotaLedger, now: datetime) -> list[LedgerRun]:
    """Return the runs that count for the quotas of today: those that began today, and those in
    progress."""
    return [run for run in ledger.runs if day_of(run.at) == day_of(now) or run.is_active(now)]


@dataclass(frozen=True)
class QuotaUse:
    """What today's runs have used of a quota. cost: US dollars, with what is reserved for runs in
    progress. max_runs, max_cost: 0 for no limit."""

    name: str
    runs: int
    max_runs: int
    cost: float
    max_cost: float


def measure_quota_use(
    ledger: QuotaLedger, quotas: Iterable[DailyQuota], now: datetime
) -> tuple[QuotaUse, ...]:
    """Return what today's runs have used of each of the quotas."""
    today = runs_of_today(ledger, now)

    def measure(quota: DailyQuota) -> QuotaUse:
        runs = [run for run in today if quota.includes(run)]
        cost = sum(run.counts(now) for run in runs)
        return QuotaUse(quota.name, len(runs), quota.bound.runs, cost, quota.bound.cost)

    return tuple(measure(quota) for quota in quotas)


def _check_daily_quotas(
    ledger: QuotaLedger, request: QuotaRequest, limits: QuotaLimits, now: datetime
) -> QuotaExceeded | float:
    """Return the US dollars left today, or the refusal of the first quota that is reached."""
    today = runs_of_today(ledger, now)
    remaining = float("inf")
    for quota in daily_quotas(limits, [request.thread], [request.user]):
        result = _check_quota(quota, filter(quota.includes, today), request, now)
        if isinstance(result, QuotaExceeded):
            return result
        remaining = min(remaining, result)
    return remaining


def _check_quota(
    quota: DailyQuota, runs: Iterable[LedgerRun], request: QuotaRequest, now: datetime
) -> QuotaExceeded | float:
    """Return the US dollars that one quota leaves, or its refusal."""
    ceiling, bound = quota.ceiling, quota.bound
    name = "this thread" if ceiling == "thread" else quota.name
    runs = list(runs)
    others = [run for run in runs if run.key != request.key]
    own_cost = sum(
        run.cost for run in runs if run.key == request.key and run.run != request.resumed_run
    )
    other_cost = sum(run.counts(now) for run in others)
    tomorrow = (now.astimezone(UTC) + timedelta(days=1)).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    retry_step = f"Ask again on or after {tomorrow:%Y-%m-%d} (00:00 UTC)"
    if bound.runs and len(others) >= bound.runs:
        run_count = f"{len(others)} run{'' if len(others) == 1 else 's'}"
        return QuotaExceeded(
            ceiling,
            f"{name} has had {run_count} today, and the limit is {bound.runs}",
            retry_step,
            tomorrow,
        )
    if not bound.cost:
        return float("inf")
    remaining = bound.cost - other_cost - own_cost
    if remaining < MIN_RUN_COST:
        reserved = sum(run.counts(now) - run.cost for run in others)
        reserved_note = (
            f" (${reserved:.2f} of it is reserved for runs in progress)" if reserved else ""
        )
        sooner_note = ", or when the runs in progress have ended" if reserved else ""
        return QuotaExceeded(
            ceiling,
            f"the runs of {name} cost ${other_cost + own_cost:.2f} today{reserved_note}, of the "
            f"${bound.cost:.2f} that they may cost",
            f"{retry_step}{sooner_note}; the operator can raise "
            f"`{'daily_budget' if ceiling == 'repository' else 'max_budget'}`",
            tomorrow,
        )
    return remaining
