"""The index of all runs of the server: one row for each, for the list of runs and the sums of cost.

The rows only describe the runs: nothing that a run does depends on them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    Float,
    Integer,
    Select,
    String,
    Table,
    Text,
    func,
    select,
)
from sqlalchemy.sql import ColumnElement

from resolver.models.run import RunState
from resolver.storage.database import ServerDatabase, open_database, upsert
from resolver.storage.schema import TABLES

RUNS = Table(
    "resolver_runs",
    TABLES,
    Column("run", String(200), primary_key=True),
    Column("repository", String(300), nullable=False, index=True),
    Column("number", Integer),
    Column("title", Text, nullable=False),
    Column("requester", String(200), nullable=False, index=True),
    Column("kind", String(40), nullable=False),
    Column("command", String(40), nullable=False),
    Column("state", String(40), nullable=False, index=True),
    Column("stage", String(40), nullable=False),
    Column("reason", Text, nullable=False),
    Column("cause", String(60), nullable=False),
    Column("model", String(300), nullable=False),
    Column("day", String(10), nullable=False, index=True),
    Column("started", Float, nullable=False),
    Column("ended", Float),
    Column("cost", Float, nullable=False),
    Column("unpriced", Integer, nullable=False),
    Column("tokens_in", Integer, nullable=False),
    Column("tokens_out", Integer, nullable=False),
    Column("branch", Text, nullable=False),
    Column("pull_request", Text, nullable=False),
    Column("executor", String(200), nullable=False),
    Column("verdict", String(40), nullable=False),
    Column("issue_url", Text, nullable=False),
)
"""run: its id, which begins with the time of the request, so that ids are in the order of time.
repository, requester: in lower case. kind, command: of the trigger. state: a state of a run,
"running" until it ends, or "deferred" while it waits for the end of an outage. stage: the last one
that is complete. reason, cause: why it ended; cause is one of a few words, "" for a success.
day: date in UTC on which it started. started, ended: seconds since 1970. cost: US dollars of the
replies with a known price; unpriced: number of the others. pull_request: its URL. verdict: of the
change's verification, "" without a change. issue_url: of the issue or pull request."""

DEFERRED = "deferred"
"""State of a run that is repeated when an outage is over."""

ACTIVE = frozenset({RunState.RUNNING.value, DEFERRED})
"""The states of a run that has not ended."""


@dataclass(frozen=True)
class IndexedRun:
    """A row of the index, with the fields that `RUNS` describes."""

    run: str
    repository: str
    number: int | None
    title: str
    requester: str
    kind: str
    command: str
    state: str
    stage: str
    reason: str
    cause: str
    model: str
    day: str
    started: float
    ended: float | None
    cost: float
    unpriced: int
    tokens_in: int
    tokens_out: int
    branch: str
    pull_request: str
    executor: str
    verdict: str
    issue_url: str


@dataclass(frozen=True)
class RunFilter:
    """Restricts the runs that are listed. An empty value restricts nothing.

    month: YYYY-MM. min_cost: US dollars. repositories: only these, in lower case, are visible to
    the reader; None for all.
    """

    repository: str = ""
    state: str = ""
    requester: str = ""
    min_cost: float = 0.0
    month: str = ""
    repositories: frozenset[str] | None = None


@dataclass(frozen=True)
class RunTotals:
    """Sums over runs. name: what they have in common."""

    name: str
    runs: int
    failed: int
    cost: float
    unpriced: int
    tokens_in: int
    tokens_out: int


class RunIndex:
    """The table of runs, created if it does not exist. Thread-safe.

    database: open, or its URL from `parse_database_url`. Methods raise DatabaseError.
    """

    def __init__(self, database: URL | ServerDatabase) -> None:
        self._database = open_database(database)

    def put(self, run: str, new: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
        """Write the row of a run. new: values of a row that does not exist yet. changes: values
        that are set in any case."""
        with self._database.writing() as connection:
            upsert(connection, RUNS, {"run": run, **_EMPTY, **new, **changes}, changes)

    def get(self, run: str) -> IndexedRun | None:
        """Return the row of a run; None if there is none."""
        with self._database.reading() as connection:
            row = connection.execute(select(RUNS).where(RUNS.c.run == run)).one_or_none()
        return IndexedRun(*row) if row is not None else None

    def runs(self, run_filter: RunFilter, before: str, limit: int) -> list[IndexedRun]:
        """Return runs, newest first. before: the id of a run; only older runs are returned, ""
        for no such restriction."""
        query = select(RUNS).where(*_conditions(run_filter))
        if before:
            query = query.where(RUNS.c.run < before)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(RUNS.c.run.desc()).limit(limit)).all()
        return [IndexedRun(*row) for row in rows]

    def repositories(self, limit: int) -> list[str]:
        """Return the repositories that have runs, in lower case."""
        query = select(RUNS.c.repository).distinct().order_by(RUNS.c.repository).limit(limit)
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def total(self, run_filter: RunFilter) -> RunTotals:
        """Return the sums over all runs."""
        with self._database.reading() as connection:
            row = connection.execute(_sums(run_filter)).one()
        return RunTotals("", *row)

    def totals_by(self, column: str, run_filter: RunFilter, limit: int) -> list[RunTotals]:
        """Return the sums for each value of a column, the highest cost first; by month, the newest
        first. column: "repository", "requester" or "month"."""
        month = func.substr(RUNS.c.day, 1, 7)
        key: ColumnElement[str] = month if column == "month" else RUNS.c[column]
        order = month.desc() if column == "month" else func.sum(RUNS.c.cost).desc()
        query = _sums(run_filter, key).group_by(key).order_by(order, key).limit(limit)
        with self._database.reading() as connection:
            return [RunTotals(*row) for row in connection.execute(query)]

    def failures(self, run_filter: RunFilter, limit: int) -> list[tuple[str, int]]:
        """Return the causes of failures with the number of runs, the most frequent first."""
        number = func.count()
        query = (
            select(RUNS.c.cause, number)
            .where(RUNS.c.cause != "", *_conditions(run_filter))
            .group_by(RUNS.c.cause)
            .order_by(number.desc(), RUNS.c.cause)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [(cause, count) for cause, count in connection.execute(query)]

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


_EMPTY: Mapping[str, Any] = {
    "stage": "", "reason": "", "cause": "", "model": "", "ended": None, "cost": 0.0, "unpriced": 0,
    "tokens_in": 0, "tokens_out": 0, "branch": "", "pull_request": "", "executor": "",
    "verdict": "", "issue_url": "",
}  # fmt: skip


def _conditions(run_filter: RunFilter) -> list[ColumnElement[bool]]:
    columns = RUNS.c
    conditions: list[ColumnElement[bool]] = []
    if run_filter.repository:
        conditions.append(columns.repository == run_filter.repository.lower())
    if run_filter.state:
        conditions.append(columns.state == run_filter.state)
    if run_filter.requester:
        conditions.append(columns.requester == run_filter.requester.lower())
    if run_filter.min_cost > 0:
        conditions.append(columns.cost >= run_filter.min_cost)
    if run_filter.month:
        conditions.append(func.substr(columns.day, 1, 7) == run_filter.month)
    if run_filter.repositories is not None:
        conditions.append(columns.repository.in_(sorted(run_filter.repositories)))
    return conditions


def _sums(run_filter: RunFilter, *keys: ColumnElement[str]) -> Select[*tuple[Any, ...]]:
    columns = RUNS.c
    failed = func.count().filter(columns.cause != "")
    sums = (columns.cost, columns.unpriced, columns.tokens_in, columns.tokens_out)
    totals = (func.coalesce(func.sum(column), 0) for column in sums)
    return select(*keys, func.count(), failed, *totals).where(*_conditions(run_filter))


def restrict(run_filter: RunFilter, repositories: Collection[str]) -> RunFilter:
    """Return the filter, restricted to the repositories that a person can read."""
    return replace(
        run_filter, repositories=frozenset(repository.lower() for repository in repositories)
    )
