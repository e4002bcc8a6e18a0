"""Decides whether a request may start work now under the quotas.

The decision considers what the conversation, the user and the repository have used today, and how
long bots have been answering each other. It reads and writes nothing. A run counts on the UTC day
on which it began.
"""

from collections.abc import Callable, Iterable
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
        max_cost: US dollars that the run may cost.
        person_commented_at: When a person last commented in the conversation, as far as known.
        exchanges: Number of Resolver's comments in the conversation after that moment.
    """

    key: str
    thread: int
    user: str
    bot: bool
    max_cost: float
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
        is_first: False when a refusal was already reported in the conversation today.
    """

    ceiling: Ceiling
    what: str
    next_step: str
    until: datetime | None = None
    is_first: bool = True


def decide_quota(
    ledger: QuotaLedger, request: QuotaRequest, limits: QuotaLimits, now: datetime
) -> QuotaGranted | QuotaExceeded:
    """Decide by the ledger whether a request may start work.

    An earlier attempt of the same request is not counted as another run; its cost is counted.

    When the ledger can't be read, a person's request is granted and a bot's is refused, because a
    loop of bots could not be distinguished from work. Each run has its own limits in either case.
    """
    result = _check_bot_chain(ledger, request, limits) or _check_daily_quotas(
        ledger, request, limits, now
    )
    if isinstance(result, QuotaExceeded):
        was_reported = any(
            refusal.thread == request.thread
            and day_of(refusal.at) == day_of(now)
            and refusal.key != request.key
            for refusal in ledger.refusals
        )
        return QuotaExceeded(
            result.ceiling, result.what, result.next_step, result.until, is_first=not was_reported
        )
    return QuotaGranted(min(request.max_cost, result), result)


def _check_bot_chain(
    ledger: QuotaLedger, request: QuotaRequest, limits: QuotaLimits
) -> QuotaExceeded | None:
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
    if not limits.chain or depth < limits.chain:
        return None
    return QuotaExceeded(
        "chain",
        f"bots and Resolver have answered each other {depth} times here without a comment by a "
        f"person in between (at most {limits.chain})",
        "A comment by a person here lifts this; the operator can raise `automatic_run_limits: "
        "{bot_chain: ...}`.",
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


def _check_daily_quotas(
    ledger: QuotaLedger, request: QuotaRequest, limits: QuotaLimits, now: datetime
) -> QuotaExceeded | float:
    """Return the US dollars left today, or the refusal of the first quota that is reached."""
    today = [run for run in ledger.runs if day_of(run.at) == day_of(now) or run.is_active(now)]
    quotas: list[tuple[Ceiling, str, QuotaBound, Callable[[LedgerRun], bool]]] = [
        ("thread", "this thread", limits.thread, lambda run: run.thread == request.thread),
        ("repository", "this repository", limits.repository, lambda _: True),
    ]
    if request.user:
        quotas.insert(
            1, ("user", f"{request.user}", limits.user, lambda run: run.user == request.user)
        )
    remaining = float("inf")
    for ceiling, name, bound, is_counted in quotas:
        result = _check_quota(ceiling, name, bound, filter(is_counted, today), request, now)
        if isinstance(result, QuotaExceeded):
            return result
        remaining = min(remaining, result)
    return remaining


def _check_quota(
    ceiling: Ceiling,
    name: str,
    bound: QuotaBound,
    runs: Iterable[LedgerRun],
    request: QuotaRequest,
    now: datetime,
) -> QuotaExceeded | float:
    """Return the US dollars that one quota leaves, or its refusal."""
    runs = list(runs)
    others = [run for run in runs if run.key != request.key]
    own_cost = sum(run.cost for run in runs if run.key == request.key)
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
            f"{retry_step}; the operator can raise `run_quotas: {{{ceiling}_day: ...}}`.",
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
            f"`cost_quotas: {{{ceiling}_day: ...}}`.",
            tomorrow,
        )
    return remaining
