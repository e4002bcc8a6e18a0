"""The ledger of a repository's runs: its entries, and how they are read and written as JSON lines.

Whoever may push can have written it. A line that is no entry is set aside and counted; nothing in
an entry is free text, so nothing in it can speak to anybody. Where it is kept is not known here.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

MOST_BYTES = 4_000_000
"""A ledger that is larger is not read."""

MOST_LINE = 2_000

KEPT_DAYS = 7
"""Days whose runs stand one by one; of older days only the sums."""

KEPT_SUMS = 100
"""Days of which the sums are kept."""

MOST_RUNS = 5_000
"""Runs that stand one by one; beyond, the oldest go into the sums of their day."""

MOST_REFUSALS = 1_000

EARLY = timedelta(hours=1)
"""How far ahead of our clock another machine's may be; an entry from further on is none."""

LONGEST = timedelta(days=8)
"""Nothing is set aside for longer than that."""

RUN_ID = r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}"
_LOGIN = r"(?:[a-z0-9](?:[a-z0-9_-]{0,59})(?:\[bot\])?)?"

Ceiling = Literal["thread", "user", "repository", "chain", "unreadable"]
"""What bounds runs. chain: bots that answer each other; unreadable: the ledger can't be read."""

MOST_DOLLARS = 1_000_000.0
MOST_COUNTED = 10**15

Dollars = Annotated[float, Field(ge=0, le=MOST_DOLLARS, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=0, le=MOST_COUNTED)]
Key = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Login = Annotated[str, Field(pattern=f"^{_LOGIN}$")]
RunId = Annotated[str, Field(pattern=f"^(?:{RUN_ID})?$")]


class _Line(BaseModel):
    """One line of the ledger. Fields of a newer version are let through and lost."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class LedgerRun(_Line):
    """A run, booked before its work and settled when it has ended. Times in UTC.

    key: digest of its trigger's key: one request, one entry, however often it is begun.
    thread: the issue it counts for, 0 for none; number: where it was asked and is told.
    until: when what is reserved is free again, should the run never come back.
    cost: US dollars of the replies whose price is known, of all attempts; unpriced: how many have
    none. reserved: set aside for the attempt at work, beside the cost.
    ending: as its comment has it, "" while it is at work. opened: the pull request; job: number of
    the Action's run.
    stop_by: who has asked on the dashboard that it stops.
    """

    kind: Literal["run"] = "run"
    key: Key
    run: RunId
    thread: Number
    number: Number = 0
    pull_request: bool = False
    user: Login
    bot: bool = False
    at: AwareDatetime
    until: AwareDatetime
    reserved: Dollars = 0.0
    cost: Dollars = 0.0
    unpriced: Number = 0
    seconds: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] = 0.0
    ending: Annotated[str, Field(pattern="^[a-z_]{0,30}$")] = ""
    attempts: Annotated[int, Field(ge=1, le=10**6)] = 1
    opened: Number = 0
    job: Number = 0
    stop_by: Login = ""

    def is_at_work(self, now: datetime) -> bool:
        """Whether it may be at work; one that never came back is until its time is over."""
        return not self.ending and now < self.until

    def counts(self, now: datetime) -> float:
        """US dollars that count against a ceiling."""
        return self.cost + (self.reserved if self.is_at_work(now) else 0.0)


class LedgerRefusal(_Line):
    """A request that a ceiling has refused, and whose thread was told: one a thread and day."""

    kind: Literal["refusal"] = "refusal"
    key: Key
    thread: Number
    number: Number = 0
    user: Login
    at: AwareDatetime
    ceiling: Ceiling


class LedgerDay(_Line):
    """The sums of a day (YYYY-MM-DD, UTC) whose runs do not stand one by one any more."""

    kind: Literal["day"] = "day"
    day: Annotated[str, Field(pattern=r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$")]
    runs: Number
    cost: Dollars
    unpriced: Number = 0
    refused: Number = 0


@dataclass(frozen=True)
class LedgerSums:
    """Of a day or a month. cost: US dollars of the replies whose price is known."""

    runs: int
    cost: float
    unpriced: int
    refused: int


class LedgerPlace(_Line):
    """The dashboard's issue; 0 while `claimed_by`, until `until`, makes it."""

    kind: Literal["dashboard"] = "dashboard"
    number: Number = 0
    claimed_by: RunId = ""
    until: AwareDatetime


_ENTRY: TypeAdapter[LedgerRun | LedgerRefusal | LedgerDay | LedgerPlace] = TypeAdapter(
    Annotated[LedgerRun | LedgerRefusal | LedgerDay | LedgerPlace, Field(discriminator="kind")]
)


@dataclass(frozen=True)
class QuotaLedger:
    """The entries, each kind oldest first. damaged: lines that were set aside when it was read.

    readable: False when what is there is no ledger, or can't be fetched: nothing is known then.
    """

    runs: tuple[LedgerRun, ...] = ()
    refusals: tuple[LedgerRefusal, ...] = ()
    days: tuple[LedgerDay, ...] = ()
    place: LedgerPlace | None = None
    damaged: int = 0
    readable: bool = True

    def run_of(self, key: str) -> LedgerRun | None:
        """The run of a request, by its key's digest."""
        return next((run for run in self.runs if run.key == key), None)

    def with_run(self, run: LedgerRun) -> "QuotaLedger":
        """With this one in the place of the one of the same key."""
        others = (each for each in self.runs if each.key != run.key)
        return replace(self, runs=tuple(sorted((*others, run), key=lambda each: each.at)))

    def with_refusal(self, refusal: LedgerRefusal) -> "QuotaLedger":
        return replace(self, refusals=(*self.refusals, refusal))

    def sums(self, span: str) -> LedgerSums:
        """The sums of a day, or of a month: `span` is how their dates begin."""
        runs = [run for run in self.runs if day_of(run.at).startswith(span)]
        refused = sum(day_of(each.at).startswith(span) for each in self.refusals)
        days = [day for day in self.days if day.day.startswith(span)]
        return LedgerSums(
            runs=len(runs) + sum(day.runs for day in days),
            cost=sum(r.cost for r in runs) + sum(day.cost for day in days),
            unpriced=sum(r.unpriced for r in runs) + sum(day.unpriced for day in days),
            refused=refused + sum(day.refused for day in days),
        )


@dataclass(frozen=True)
class KeptLedger:
    """The ledger as the repository keeps it. tip: the object that its ref names, "" for none."""

    ledger: QuotaLedger
    tip: str = ""


def day_of(moment: datetime) -> str:
    """The day, of UTC, as YYYY-MM-DD."""
    return f"{moment.astimezone(UTC):%Y-%m-%d}"


def normalize_login(login: str) -> str:
    """How an account is written in the ledger: in lower case, and never more than a login."""
    plain = re.sub(r"[^a-z0-9_\[\]-]", "-", login.lower())[:50]
    return plain if re.fullmatch(_LOGIN, plain) else re.sub(r"[^a-z0-9]", "", plain)


def read_ledger(data: bytes, now: datetime) -> QuotaLedger:
    """What the bytes say. Never raises: what is no entry is counted as damaged.

    Of two runs with one key the later line is used. An entry from the future is none: it would
    count on a day that it chooses.
    """
    if len(data) > MOST_BYTES:
        return QuotaLedger(readable=False)
    runs: dict[str, LedgerRun] = {}
    days: dict[str, LedgerDay] = {}
    refusals: list[LedgerRefusal] = []
    place: LedgerPlace | None = None
    damaged = 0
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        match _entry(line, now):
            case LedgerRun() as run:
                runs[run.key] = run
            case LedgerRefusal() as refusal:
                refusals.append(refusal)
            case LedgerDay() as day:
                days[day.day] = day
            case LedgerPlace() as found:
                place = found
            case None:
                damaged += 1
    readable = not damaged or bool(runs or days or refusals)
    return QuotaLedger(
        runs=tuple(sorted(runs.values(), key=lambda each: each.at)),
        refusals=tuple(sorted(refusals, key=lambda each: each.at)),
        days=tuple(sorted(days.values(), key=lambda each: each.day)),
        place=place,
        damaged=damaged,
        readable=readable,
    )


def _entry(
    line: bytes, now: datetime
) -> LedgerRun | LedgerRefusal | LedgerDay | LedgerPlace | None:
    if len(line) > MOST_LINE:
        return None
    try:
        entry = _ENTRY.validate_json(line)
        if (
            isinstance(entry, LedgerRun | LedgerRefusal)
            and not now - timedelta(days=400) < entry.at
        ):
            return None
        if isinstance(entry, LedgerRun | LedgerRefusal) and entry.at > now + EARLY:
            return None
        if isinstance(entry, LedgerRun) and entry.until - entry.at > LONGEST:
            return None
        if isinstance(entry, LedgerPlace) and entry.until > now + LONGEST:
            return None
    except (ValidationError, OverflowError):
        return None
    return entry


def serialize_ledger(ledger: QuotaLedger, now: datetime) -> bytes:
    """The ledger as JSON lines, with what is old summed up."""
    ledger = _summed_up(ledger, now)
    place = (ledger.place,) if ledger.place else ()
    lines: Iterable[_Line] = (*place, *ledger.days, *ledger.refusals, *ledger.runs)
    return "".join(f"{line.model_dump_json()}\n" for line in lines).encode()


def _summed_up(ledger: QuotaLedger, now: datetime) -> QuotaLedger:
    first = day_of(now - timedelta(days=KEPT_DAYS))
    runs = [run for run in ledger.runs if day_of(run.at) >= first or run.is_at_work(now)]
    runs = runs[-MOST_RUNS:]
    refusals = [each for each in ledger.refusals if day_of(each.at) >= first][-MOST_REFUSALS:]
    kept_runs, kept_refusals = {run.key for run in runs}, set(map(id, refusals))
    sums = {day.day: day for day in ledger.days}
    for day, runs_of, cost, unpriced, refused in _left_out(ledger, kept_runs, kept_refusals):
        known = sums.get(day, LedgerDay(day=day, runs=0, cost=0.0))
        sums[day] = LedgerDay(
            day=day,
            runs=min(known.runs + runs_of, MOST_COUNTED),
            cost=round(min(known.cost + cost, MOST_DOLLARS), 6),
            unpriced=min(known.unpriced + unpriced, MOST_COUNTED),
            refused=min(known.refused + refused, MOST_COUNTED),
        )
    oldest = day_of(now - timedelta(days=KEPT_SUMS))
    days = tuple(sums[day] for day in sorted(sums) if oldest <= day <= day_of(now))
    return replace(ledger, runs=tuple(runs), refusals=tuple(refusals), days=days)


def _left_out(
    ledger: QuotaLedger, runs: set[str], refusals: set[int]
) -> Iterator[tuple[str, int, float, int, int]]:
    """What does not stand by itself any more: day, runs, cost, unpriced, refusals."""
    for run in ledger.runs:
        if run.key not in runs:
            yield day_of(run.at), 1, run.cost, run.unpriced, 0
    for refusal in ledger.refusals:
        if id(refusal) not in refusals:
            yield day_of(refusal.at), 0, 0.0, 0, 1
