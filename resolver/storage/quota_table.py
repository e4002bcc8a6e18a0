"""Stores the quota ledgers of a server's repositories in its database: one row for each run.

The jobs of GitHub Actions have the repository alone in common and keep their ledger there, see
`resolver.storage.ledger_ref`. What a ledger allows is decided in one place for both.
"""

from datetime import UTC, datetime, timedelta

from sqlalchemy import (
    URL,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    Row,
    String,
    Table,
    case,
    func,
    select,
    text,
)

from resolver.config.retries import RetryPolicy
from resolver.github.events.quota_ledger import (
    RUN_RETENTION_DAYS,
    Answer,
    Change,
    CostTotal,
    LedgerRun,
    QuotaLedger,
    day_of,
)
from resolver.storage.database import (
    DATABASE_RETRIES,
    ServerDatabase,
    call_persistently,
    open_database,
    upsert,
)
from resolver.storage.schema import TABLES

COSTS = Table(
    "resolver_costs",
    TABLES,
    Column("repository", String(300), primary_key=True),
    Column("key", String(40), primary_key=True),
    Column("day", String(10), nullable=False, index=True),
    Column("run", String(40), nullable=False),
    Column("thread", BigInteger, nullable=False),
    Column("user", String(100), nullable=False),
    Column("bot", Boolean, nullable=False),
    Column("at", Float, nullable=False),
    Column("until", Float, nullable=False),
    Column("reserved", Float, nullable=False),
    Column("cost", Float, nullable=False),
    Column("unpriced", Integer, nullable=False),
    Column("ending", String(30), nullable=False),
)
"""The fields of `LedgerRun`, with times as seconds since 1970. repository: in lower case."""


class QuotaTable:
    """The table of costs. Safe to use from several threads and processes.

    database: open, or its URL as returned by `database.parse_database_url`. Raises UsageError if
    it can't be used, and DatabaseError if that happens later. No error contains the password.
    retries: how long a change is tried again while the database can't be used. Otherwise a restart
    of the database would end the runs that start meanwhile, and lose the costs of those that end.
    """

    def __init__(
        self, database: URL | ServerDatabase, retries: RetryPolicy = DATABASE_RETRIES
    ) -> None:
        self._database = open_database(database)
        self._retries = retries

    def read(self, repository: str, now: datetime) -> QuotaLedger:
        """Return the ledger of a repository, with the runs of the last days."""
        with self._database.reading() as connection:
            return _read_ledger(connection, repository.lower(), now)

    def change(self, repository: str, now: datetime, change: Change[Answer]) -> Answer:
        """Change the ledger of a repository, and return the answer."""
        repository = repository.lower()

        def attempt() -> Answer:
            with self._database.writing() as connection:
                _lock(connection)
                ledger = _read_ledger(connection, repository, now)
                changed, answer = change(ledger)
                for run in changed.runs if changed else ():
                    if ledger.run_of(run.key) != run:
                        _write(connection, repository, run)
            return answer

        return call_persistently(attempt, self._retries, "costs")

    def totals(
        self, now: datetime, repository: str | None = None, month: str | None = None
    ) -> tuple[CostTotal, ...]:
        """Return the totals by month, newest first, and by repository.

        repository, month: restrict the result to these.
        """
        table = COSTS.c
        months = func.substr(table.day, 1, 7).label("month")
        is_active = (table.ending == "") & (table.until > now.timestamp())
        query = (
            select(
                months,
                table.repository,
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
            return tuple(CostTotal(*row) for row in connection.execute(query).all())

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


def _lock(connection: Connection) -> None:
    """Prevent other writes until the transaction ends, so that runs that start at the same time
    can't exceed a quota together. SQLite's write transactions do that by themselves."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"LOCK TABLE {COSTS.name} IN SHARE ROW EXCLUSIVE MODE"))


def _read_ledger(connection: Connection, repository: str, now: datetime) -> QuotaLedger:
    first_day = day_of(now - timedelta(days=RUN_RETENTION_DAYS))
    query = select(COSTS).where(COSTS.c.repository == repository, COSTS.c.day >= first_day)
    rows = connection.execute(query.order_by(COSTS.c.at)).all()
    return QuotaLedger(runs=tuple(_run_of_row(row) for row in rows))


def _run_of_row(row: Row[tuple[object, ...]]) -> LedgerRun:
    values = row._asdict()
    times = {name: datetime.fromtimestamp(values[name], UTC) for name in ("at", "until")}
    fields = {name: values[name] for name in LedgerRun.model_fields if name in values}
    return LedgerRun(**{**fields, **times})


def _write(connection: Connection, repository: str, run: LedgerRun) -> None:
    values = run.model_dump(exclude={"kind", "key"})
    values |= {"at": run.at.timestamp(), "until": run.until.timestamp(), "day": day_of(run.at)}
    upsert(connection, COSTS, {"repository": repository, "key": run.key, **values}, values)
