"""The quota ledger of a repository: its entries and their form as JSON lines.

Anyone with push access can write to the ledger, so its content is not trusted. A line that is not a
valid entry is skipped, and no entry has a free-text field, so the ledger can't carry
instructions to a model. This module does not know where the ledger is stored; see
`resolver.storage.ledger_ref`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

MAX_LEDGER_BYTES = 4_000_000
"""Maximum size of a ledger in bytes. A larger one is reported as unreadable."""

MAX_LINE_BYTES = 2_000
"""Maximum length of one line in bytes. A longer one is invalid."""

RUN_RETENTION_DAYS = 7
"""Days for which single runs are kept. Older ones are reduced to daily sums."""

SUM_RETENTION_DAYS = 100
"""Days for which the daily sums are kept."""

MAX_RUNS = 5_000
"""Maximum number of single runs. The oldest ones beyond it are added to the sums of their day."""

MAX_CLOCK_DIFFERENCE = timedelta(hours=1)
"""Tolerated clock difference between machines. An entry dated further in the future is invalid."""

MAX_RESERVATION = timedelta(days=8)
"""Maximum duration of a reservation. An entry that claims a longer one is invalid."""

RUN_ID = r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}"
_LOGIN = r"(?:[a-z0-9](?:[a-z0-9_-]{0,59})(?:\[bot\])?)?"

Ceiling = Literal["thread", "user", "repository", "chain", "unreadable"]
"""The limit that refused a request. "chain": bots and Resolver kept answering each other.
"unreadable": the ledger can't be read."""

MAX_DOLLARS = 1_000_000.0
MAX_COUNT = 10**15

Dollars = Annotated[float, Field(ge=0, le=MAX_DOLLARS, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Key = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Login = Annotated[str, Field(pattern=f"^{_LOGIN}$")]
RunId = Annotated[str, Field(pattern=f"^(?:{RUN_ID})?$")]


class _Line(BaseModel):
    """One line of the ledger.

    Fields that a newer version added are ignored, and lost when the line is written again.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


class LedgerRun(_Line):
    """A run: its cost is reserved before the work begins and recorded when it ends.

    Attributes:
        key: Digest of the trigger's key. A request has one entry, however often it is started.
        run: Id of the run.
        thread: Number of the issue whose quota the run uses; 0 for none.
        user: Normalized login of the requester.
        at: When the run began. Times are in UTC.
        until: When the reservation expires, in case the run never records its end.
        reserved: US dollars reserved for the current attempt, in addition to `cost`.
        cost: US dollars of all replies with a known price, over all attempts.
        unpriced: Number of replies without a known price.
        ending: How the run ended; "" while it is active.
    """

    kind: Literal["run"] = "run"
    key: Key
    run: RunId
    thread: Number
    user: Login
    bot: bool = False
    at: AwareDatetime
    until: AwareDatetime
    reserved: Dollars = 0.0
    cost: Dollars = 0.0
    unpriced: Number = 0
    ending: Annotated[str, Field(pattern="^[a-z_]{0,30}$")] = ""

    def is_active(self, now: datetime) -> bool:
        """Return True if the run may still be active.

        A run that never recorded its end counts as active until its reservation expires.
        """
        return not self.ending and now < self.until

    def counts(self, now: datetime) -> float:
        """Return the US dollars that count against a quota: the cost and any active reservation."""
        return self.cost + (self.reserved if self.is_active(now) else 0.0)


class LedgerDay(_Line):
    """The sums of one day (YYYY-MM-DD, UTC) whose single entries are no longer kept."""

    kind: Literal["day"] = "day"
    day: Annotated[str, Field(pattern=r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$")]
    runs: Number
    cost: Dollars
    unpriced: Number = 0


@dataclass(frozen=True)
class CostTotal:
    """Cost of the runs of a repository in a month (YYYY-MM, UTC).

    cost: US dollars of the replies with a known price; unpriced: number of replies without one.
    reserved: US dollars reserved for active runs; active_runs: their number.
    """

    month: str
    repository: str
    runs: int
    cost: float
    unpriced: int
    reserved: float = 0.0
    active_runs: int = 0


_LedgerEntry = LedgerRun | LedgerDay

_ENTRY: TypeAdapter[_LedgerEntry] = TypeAdapter(
    Annotated[_LedgerEntry, Field(discriminator="kind")]
)


@dataclass(frozen=True)
class QuotaLedger:
    """The entries of a ledger, each kind sorted oldest first.

    Attributes:
        is_damaged: True when invalid lines were skipped when the ledger was read.
        readable: False when the stored data is not a ledger or can't be fetched, so that nothing is
            known about earlier runs.
    """

    runs: tuple[LedgerRun, ...] = ()
    days: tuple[LedgerDay, ...] = ()
    is_damaged: bool = False
    readable: bool = True

    def run_of(self, key: str) -> LedgerRun | None:
        """Return the run whose request has this key digest, or None."""
        return next((run for run in self.runs if run.key == key), None)

    def with_run(self, run: LedgerRun) -> "QuotaLedger":
        """Return a copy in which `run` replaces the run with the same key."""
        others = (other for other in self.runs if other.key != run.key)
        return replace(self, runs=tuple(sorted((*others, run), key=lambda listed: listed.at)))

    def totals(self, repository: str, now: datetime) -> tuple[CostTotal, ...]:
        """Return the totals by month, newest first. repository: its name, for the result."""
        months: dict[str, CostTotal] = {}

        def add(month: str, **more: float) -> None:
            total = months.get(month, CostTotal(month, repository, 0, 0.0, 0))
            sums = {name: getattr(total, name) + value for name, value in more.items()}
            months[month] = replace(total, **sums)

        for day in self.days:
            add(day.day[:7], runs=day.runs, cost=day.cost, unpriced=day.unpriced)
        for run in self.runs:
            active = {"reserved": run.reserved, "active_runs": 1} if run.is_active(now) else {}
            add(day_of(run.at)[:7], runs=1, cost=run.cost, unpriced=run.unpriced, **active)
        return tuple(months[month] for month in sorted(months, reverse=True))


Answer = TypeVar("Answer")
Change = Callable[[QuotaLedger], tuple[QuotaLedger | None, Answer]]
"""Returns the new ledger (None to leave it unchanged) and an answer for the caller. It may be
called more than once, with the newer ledger, if other runs have changed it first."""


@dataclass(frozen=True)
class LedgerVersion:
    """The ledger as stored in the repository.

    `tip` is the id of the object that its ref points to, or None when the ref does not exist.
    `pushed` is true if this process has put the ledger there.
    """

    ledger: QuotaLedger
    tip: str | None = None
    pushed: bool = False


def day_of(moment: datetime) -> str:
    """Return the UTC day of a moment as YYYY-MM-DD."""
    return f"{moment.astimezone(UTC):%Y-%m-%d}"


def normalize_login(login: str) -> str:
    """Return a login in lower case, with only characters that a login can have."""
    cleaned = re.sub(r"[^a-z0-9_\[\]-]", "-", login.lower())[:50]
    return cleaned if re.fullmatch(_LOGIN, cleaned) else re.sub(r"[^a-z0-9]", "", cleaned)


def read_ledger(data: bytes, now: datetime) -> QuotaLedger:
    """Parse a ledger. Never raises: a line that is not a valid entry is skipped.

    Of two runs with the same key the later line wins. An entry dated in the future is invalid,
    since it could otherwise be counted on a day of its author's choice. Runs older than 400 days
    are invalid as well.
    """
    if len(data) > MAX_LEDGER_BYTES:
        return QuotaLedger(readable=False)
    entries = [_parse_entry(line, now) for line in data.split(b"\n") if line.strip()]
    runs = {entry.key: entry for entry in entries if isinstance(entry, LedgerRun)}
    days = {entry.day: entry for entry in entries if isinstance(entry, LedgerDay)}
    is_damaged = None in entries
    return QuotaLedger(
        runs=tuple(sorted(runs.values(), key=lambda run: run.at)),
        days=tuple(sorted(days.values(), key=lambda day: day.day)),
        is_damaged=is_damaged,
        readable=not is_damaged or bool(runs or days),
    )


def _parse_entry(line: bytes, now: datetime) -> _LedgerEntry | None:
    """Return the entry on one line, or None when the line is not valid."""
    if len(line) > MAX_LINE_BYTES:
        return None
    try:
        entry = _ENTRY.validate_json(line)
        if (
            isinstance(entry, LedgerRun)
            and not now - timedelta(days=400) < entry.at <= now + MAX_CLOCK_DIFFERENCE
        ):
            return None
        if isinstance(entry, LedgerRun) and entry.until - entry.at > MAX_RESERVATION:
            return None
    except (ValidationError, OverflowError):
        return None
    return entry


def serialize_ledger(ledger: QuotaLedger, now: datetime) -> bytes:
    """Return the ledger as JSON lines, with old entries reduced to daily sums."""
    ledger = _sum_up_old_runs(ledger, now)
    lines: Iterable[_Line] = (*ledger.days, *ledger.runs)
    return "".join(f"{line.model_dump_json()}\n" for line in lines).encode()


def _sum_up_old_runs(ledger: QuotaLedger, now: datetime) -> QuotaLedger:
    """Reduce old runs, and those beyond the maximum number, to the sums of their days."""
    first_day = day_of(now - timedelta(days=RUN_RETENTION_DAYS))
    runs = [run for run in ledger.runs if day_of(run.at) >= first_day or run.is_active(now)]
    runs = runs[-MAX_RUNS:]
    kept = {run.key for run in runs}
    sums = {day.day: day for day in ledger.days}
    for run in ledger.runs:
        if run.key in kept:
            continue
        day = day_of(run.at)
        day_sum = sums.get(day, LedgerDay(day=day, runs=0, cost=0.0))
        sums[day] = LedgerDay(
            day=day,
            runs=min(day_sum.runs + 1, MAX_COUNT),
            cost=round(min(day_sum.cost + run.cost, MAX_DOLLARS), 6),
            unpriced=min(day_sum.unpriced + run.unpriced, MAX_COUNT),
        )
    oldest_day = day_of(now - timedelta(days=SUM_RETENTION_DAYS))
    days = tuple(sums[day] for day in sorted(sums) if oldest_day <= day <= day_of(now))
    return replace(ledger, runs=tuple(runs), days=days)
