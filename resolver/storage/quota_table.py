"""Stores the quota ledgers of a server's repositories in its database: one row for each run.

The jobs of GitHub Actions have the repository alone in common and keep their ledger there, see
`resolver.storage.ledger_ref`. What a ledger allows is decided in one place for both.
"""

import logging
from collections.abc import Iterable
from datetime import datetime

from pydantic import ValidationError
from sqlalchemy import URL, Column, Connection, String, Table, Text, select, text

from resolver.config.retries import RetryPolicy
from resolver.errors import ResolverError
from resolver.github.events.quota_ledger import (
    MAX_RESERVATION,
    Answer,
    Change,
    CostTotal,
    LedgerRun,
    QuotaLedger,
    day_of,
)
from resolver.storage.database import TABLES, DatabaseError, ServerDatabase, open_database, upsert

logger = logging.getLogger("resolver.storage")

DATABASE_RETRIES = RetryPolicy(seconds=240.0, max_wait_seconds=5.0)
"""How long a change is tried again while the database can't be used. Otherwise a restart of the
database would end the runs that start meanwhile, and lose the costs of those that end."""

COSTS = Table(
    "resolver_costs",
    TABLES,
    Column("repository", String(300), primary_key=True),
    Column("key", String(40), primary_key=True),
    Column("day", String(10), nullable=False, index=True),
    Column("run", Text, nullable=False),
)
"""repository: in lower case. key, day: of the run. run: a `LedgerRun` as JSON."""


class QuotaTable:
    """The table of costs. Safe to use from several threads and processes.

    database: open, or its URL as returned by `database.parse_database_url`. Raises UsageError if
    it can't be used, and DatabaseError if that happens later. No error contains the password.
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
        """Change the ledger of a repository, and return the answer. The error of the last attempt
        reaches people on GitHub, so it does not name the database."""
        repository = repository.lower()

        def attempt() -> Answer:
            with self._database.writing() as connection:
                _lock(connection)
                ledger = _read_ledger(connection, repository, now)
                changed, answer = change(ledger)
                for run in changed.runs if changed else ():
                    if ledger.run_of(run.key) != run:
                        values = {"day": day_of(run.at), "run": run.model_dump_json()}
                        row = {"repository": repository, "key": run.key, **values}
                        upsert(connection, COSTS, row, values)
            return answer

        def wait_after(error: ResolverError) -> float | None:
            return 0.0 if isinstance(error, DatabaseError) else None

        try:
            return self._retries.call(attempt, wait_after)
        except DatabaseError as error:
            logger.error("costs can't be stored: %s", error.what)
            raise DatabaseError(
                "the server can't use its database", "ask again later; the server's log says why"
            ) from error

    def totals(self, now: datetime, repository: str = "", month: str = "") -> tuple[CostTotal, ...]:
        """Return the totals by month, newest first, and by repository.

        repository, month: restrict the result to these; "" for all.
        """
        query = select(COSTS.c.repository, COSTS.c.run).where(COSTS.c.day.startswith(month))
        if repository:
            query = query.where(COSTS.c.repository == repository.lower())
        runs: dict[str, list[str]] = {}
        with self._database.reading() as connection:
            for name, run in connection.execute(query.order_by(COSTS.c.repository)):
                runs.setdefault(name, []).append(run)
        totals = [
            total
            for name, texts in runs.items()
            for total in QuotaLedger(_parse_runs(texts)).totals(name, now)
        ]
        return tuple(sorted(totals, key=lambda total: total.month, reverse=True))

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


def _lock(connection: Connection) -> None:
    """Prevent other writes until the transaction ends, so that runs that start at the same time
    can't exceed a quota together. SQLite's write transactions do that by themselves."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"LOCK TABLE {COSTS.name} IN SHARE ROW EXCLUSIVE MODE"))


def _read_ledger(connection: Connection, repository: str, now: datetime) -> QuotaLedger:
    first_day = day_of(now - MAX_RESERVATION)
    query = select(COSTS.c.run).where(COSTS.c.repository == repository, COSTS.c.day >= first_day)
    return QuotaLedger(_parse_runs(connection.scalars(query)))


def _parse_runs(texts: Iterable[str]) -> tuple[LedgerRun, ...]:
    """Return the runs that can be read, oldest first."""
    runs = []
    for run in texts:
        try:
            runs.append(LedgerRun.model_validate_json(run))
        except ValidationError:
            logger.error("the cost of a run can't be read and is set aside")
    return tuple(sorted(runs, key=lambda run: run.at))
