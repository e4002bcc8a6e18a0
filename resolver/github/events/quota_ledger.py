"""The quota ledger of a repository: its entries and their form as JSON lines.

Anyone with push access can write to the ledger, so its content is not trusted. A line that is not a
valid entry is skipped, and no entry has a free-text field, so the ledger can't carry
instructions to a model. This module does not know where the ledger is stored; see
`resolver.storage.ledger_ref`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

MAX_LEDGER_BYTES = 4_000_000
"""Maximum size of a ledger in bytes. A larger one is reported as unreadable."""

MAX_LINE_BYTES = 2_000
"""Maximum length of one line in bytes. A longer one is invalid."""

RETENTION_DAYS = 100
"""Days for which runs are kept."""

MAX_RUNS = 10_000
"""Maximum number of runs. The oldest ones beyond it are not kept."""

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


class LedgerRun(BaseModel):
    """A run: its cost is reserved before the work begins and recorded when it ends.

    It is one line of the ledger. Fields that a newer version added are ignored, and lost when the
    line is written again.

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

    model_config = ConfigDict(frozen=True, extra="ignore")

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


@dataclass(frozen=True)
class QuotaLedger:
    """The runs of a ledger, sorted oldest first.

    Attributes:
        is_damaged: True when invalid lines were skipped when the ledger was read.
        readable: False when the stored data is not a ledger or can't be fetched, so that nothing is
            known about earlier runs.
    """

    runs: tuple[LedgerRun, ...] = ()
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
        months: dict[str, list[LedgerRun]] = {}
        for run in self.runs:
            months.setdefault(day_of(run.at)[:7], []).append(run)
        return tuple(
            CostTotal(
                month=month,
                repository=repository,
                runs=len(runs),
                cost=sum(run.cost for run in runs),
                unpriced=sum(run.unpriced for run in runs),
                reserved=sum(run.reserved for run in runs if run.is_active(now)),
                active_runs=sum(run.is_active(now) for run in runs),
            )
            for month, runs in sorted(months.items(), reverse=True)
        )


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
    entries = [_parse_run(line, now) for line in data.split(b"\n") if line.strip()]
    runs = {run.key: run for run in entries if run is not None}
    is_damaged = None in entries
    return QuotaLedger(
        runs=tuple(sorted(runs.values(), key=lambda run: run.at)),
        is_damaged=is_damaged,
        readable=not is_damaged or bool(runs),
    )


def _parse_run(line: bytes, now: datetime) -> LedgerRun | None:
    """Return the run on one line, or None when the line is not valid."""
    if len(line) > MAX_LINE_BYTES:
        return None
    try:
        run = LedgerRun.model_validate_json(line)
        if not now - timedelta(days=400) < run.at <= now + MAX_CLOCK_DIFFERENCE:
            return None
        if run.until - run.at > MAX_RESERVATION:
            return None
    except (ValidationError, OverflowError):
        return None
    return run


def serialize_ledger(ledger: QuotaLedger, now: datetime) -> bytes:
    """Return the ledger as JSON lines, without old runs and those beyond the maximum number."""
    first_day = day_of(now - timedelta(days=RETENTION_DAYS))
    runs = [run for run in ledger.runs if day_of(run.at) >= first_day]
    return "".join(f"{run.model_dump_json()}\n" for run in runs[-MAX_RUNS:]).encode()
