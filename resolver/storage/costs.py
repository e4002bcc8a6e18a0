"""Stores what runs have cost, by repository and month, in the server's database: one row for each
run.

Budget is reserved when a run starts and released when it ends, so that runs at the same time can't
exceed a limit together. Days and months are those in UTC in which the run started.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Float,
    Integer,
    String,
    Table,
    case,
    func,
    select,
    text,
)

from resolver.config.retries import RetryPolicy
from resolver.config.run_settings import CostQuotas
from resolver.errors import OverBudget
from resolver.models.repository import owner_of
from resolver.storage.database import (
    DATABASE_RETRIES,
    ServerDatabase,
    call_persistently,
    open_database,
    upsert,
)
from resolver.storage.schema import TABLES

SPENDING = Table(
    "resolver_spending",
    TABLES,
    Column("run", String(200), primary_key=True),
    Column("repository", String(300), nullable=False, index=True),
    Column("day", String(10), nullable=False, index=True),
    Column("cost", Float, nullable=False),
    Column("unpriced", Integer, nullable=False),
    Column("reserved", Float, nullable=False),
    Column("until", Float, nullable=False),
)
"""cost: US dollars of the replies with a known price; unpriced: number of replies without one.
reserved: US dollars reserved for the run until the time `until` (seconds since 1970); 0 when it has
ended."""

MIN_BUDGET = 0.01
"""Minimum US dollars to start a run; with less it could not call the model."""


@dataclass(frozen=True)
class SpendingTotal:
    """Cost of the runs of a repository in a month (YYYY-MM).

    cost: US dollars of the replies with a known price; unpriced: number of replies without one.
    reserved: US dollars reserved for active runs; active_runs: their number.
    """

    repository: str
    month: str
    runs: int
    cost: float
    unpriced: int
    reserved: float
    active_runs: int


@dataclass(frozen=True)
class _Quota:
    """A limit of `cost_quotas` for the runs of a period.

    name: of its part in the setting. runs: the runs that it limits, for a message. period: its
    length, for a message. next_period: day from which there is budget again. conditions: select
    the rows of its runs.
    """

    name: str
    limit: float
    runs: str
    period: str
    next_period: str
    conditions: tuple[ColumnElement[bool], ...]


@dataclass(frozen=True)
class _QuotaUsage:
    """What other runs have used of a quota: US dollars spent and reserved, and the number of
    replies of unknown price."""

    quota: _Quota
    spent: float
    reserved: float
    unpriced: int

    @property
    def left(self) -> float:
        """US dollars that are left."""
        return self.quota.limit - self.spent - self.reserved


class SpendingLedger:
    """The table of costs. Safe to use from several threads and
    processes.

    database: open, or its URL as returned by `database.parse_database_url`. Raises UsageError if
    it can't be used, and DatabaseError if that happens later. No error contains the password.
    retries: how long costs are stored again while the database can't be used. Otherwise a restart
    of the database would end the runs that start meanwhile, and lose the costs of those that end.
    """

    def __init__(
        self, database: URL | ServerDatabase, retries: RetryPolicy = DATABASE_RETRIES
    ) -> None:
        self._database = open_database(database)
        self._retries = retries

    def reserve(
        self,
        run: str,
        repository: str,
        amount: float,
        quotas: CostQuotas,
        now: datetime,
        hours: float,
    ) -> float:
        """Reserve `amount` dollars for the run, or what is left of the budget if that is less.
        Return everything that is left, without subtracting the run's own earlier cost. A second
        call replaces the first.

        quotas: `repository_month`, `owner_month` and `server_day` apply. hours: after which the
        reservation expires if the run never ends. Raises OverBudget.
        """
        repository, is_other_run = repository.lower(), SPENDING.c.run != run

        def attempt() -> float:
            with self._database.writing() as connection:
                _lock(connection)
                usages = [
                    _read_usage(connection, now, quota, is_other_run)
                    for quota in _quotas(repository, quotas, now)
                ]
                tightest = min(usages, key=lambda usage: usage.left, default=None)
                available = float("inf") if tightest is None else tightest.left
                if tightest is not None and available < MIN_BUDGET:
                    raise _over_budget_error(tightest)
                values = {
                    "repository": repository,
                    "reserved": min(amount, available),
                    "until": (now + timedelta(hours=hours)).timestamp(),
                }
                _write(connection, run, now, values)
            return available

        return call_persistently(attempt, self._retries, "costs")

    def record_cost(
        self, run: str, repository: str, cost: float, unpriced: int, now: datetime
    ) -> None:
        """Record the total cost of the run and release its reservation."""
        values = {
            "repository": repository.lower(),
            "cost": cost,
            "unpriced": unpriced,
            "reserved": 0.0,
            "until": 0.0,
        }
        is_of_run = SPENDING.c.run == run

        def attempt() -> None:
            with self._database.writing() as connection:
                _lock(connection)
                is_known = connection.scalar(select(SPENDING.c.run).where(is_of_run)) is not None
                if not (is_known or cost or unpriced):
                    return  # it was refused before it started
                _write(connection, run, now, values)

        call_persistently(attempt, self._retries, "costs")

    def totals(
        self, now: datetime, repository: str = "", month: str = ""
    ) -> tuple[SpendingTotal, ...]:
        """Return the totals by month, newest first, and by repository.

        repository, month: restrict the result to these.
        """
        table = SPENDING.c
        months = func.substr(table.day, 1, 7).label("month")
        is_active = table.until > now.timestamp()
        query = (
            select(
                table.repository,
                months,
                func.count(),
                func.sum(table.cost),
                func.sum(table.unpriced),
                func.sum(case((is_active, table.reserved), else_=0.0)),
                func.sum(case((is_active, 1), else_=0)),
            )
            .group_by(table.repository, months)
            .order_by(months.desc(), table.repository)
        )
        if repository:
            query = query.where(table.repository == repository.lower())
        if month:
            query = query.where(table.day.like(f"{month}-%"))
        with self._database.reading() as connection:
            return tuple(SpendingTotal(*row) for row in connection.execute(query).all())

    def cost_of_day(self, now: datetime) -> float:
        """Return the cost in US dollars of all runs that started on that day."""
        query = select(func.sum(SPENDING.c.cost)).where(SPENDING.c.day == f"{now:%Y-%m-%d}")
        with self._database.reading() as connection:
            return float(connection.scalar(query) or 0.0)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


def _lock(connection: Connection) -> None:
    """Prevent other writes until the transaction ends. SQLite's write transactions do that by
    themselves."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"LOCK TABLE {SPENDING.name} IN SHARE ROW EXCLUSIVE MODE"))


def _read_usage(
    connection: Connection, now: datetime, quota: _Quota, is_other_run: ColumnElement[bool]
) -> _QuotaUsage:
    """Return the use of a quota by other runs."""
    table = SPENDING.c
    unspent = case((table.reserved > table.cost, table.reserved - table.cost), else_=0.0)
    reserved = case((table.until > now.timestamp(), unspent), else_=0.0)
    sums = select(func.sum(table.cost), func.sum(reserved), func.sum(table.unpriced))
    row = connection.execute(sums.where(is_other_run, *quota.conditions)).one()
    cost, total_reserved, unpriced = row
    return _QuotaUsage(quota, cost or 0.0, total_reserved or 0.0, unpriced or 0)


def _write(connection: Connection, run: str, now: datetime, values: dict[str, Any]) -> None:
    """Store the values of a run. Its day is that on which it was first stored."""
    new = {"run": run, "day": f"{now:%Y-%m-%d}", "cost": 0.0, "unpriced": 0}
    upsert(connection, SPENDING, new | values, values)


def _quotas(repository: str, quotas: CostQuotas, now: datetime) -> Iterator[_Quota]:
    """Yield the quotas that limit a run of the repository."""
    table = SPENDING.c
    in_month = table.day.like(f"{now:%Y-%m}-%")
    next_month = (now.replace(day=1) + timedelta(days=32)).strftime("%Y-%m-01")
    if quotas.repository_month is not None:
        yield _Quota(
            "repository_month",
            quotas.repository_month,
            f"the runs of {repository} in {now:%Y-%m}",
            "a month",
            next_month,
            (in_month, table.repository == repository),
        )
    if quotas.owner_month is not None:
        owner = owner_of(repository)
        yield _Quota(
            "owner_month",
            quotas.owner_month,
            f"the runs of all repositories of {owner} in {now:%Y-%m}",
            "a month",
            next_month,
            (in_month, table.repository.startswith(f"{owner}/", autoescape=True)),
        )
    if quotas.server_day is not None:
        yield _Quota(
            "server_day",
            quotas.server_day,
            "today's runs on this server",
            "a day",
            (now + timedelta(days=1)).strftime("%Y-%m-%d"),
            (table.day == f"{now:%Y-%m-%d}",),
        )


def _over_budget_error(usage: _QuotaUsage) -> OverBudget:
    """Return the error that says which limit is used up, and when there is budget again."""
    quota = usage.quota
    reserved_note = (
        f" (${usage.reserved:.2f} more is reserved for runs in progress)" if usage.reserved else ""
    )
    unpriced_note = (
        f"; {usage.unpriced} replies of unknown price are not included" if usage.unpriced else ""
    )
    what = (
        f"{quota.runs} have cost ${usage.spent:.2f}{reserved_note} of the ${quota.limit:.2f} that "
        f"{quota.period} may cost{unpriced_note}"
    )
    earlier_note = ", or when the runs in progress have ended" if usage.reserved else ""
    return OverBudget(
        what,
        f"Ask again on or after {quota.next_period} (00:00 UTC){earlier_note}; the operator can "
        f"raise `cost_quotas: {{{quota.name}: ...}}`.",
    )
