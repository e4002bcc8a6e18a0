"""The index of all runs of the server, one row for each.

It is in the server's database, so that a comment finds the earlier runs of its conversation on any
machine. The list of runs and the sums of cost are made from it, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, String, Table, Text, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column
from sqlalchemy.sql import ColumnElement

from resolver.events.run_log import is_resumable
from resolver.events.stream import Clock, utc_now
from resolver.models.run import RunState, Trigger
from resolver.storage.database import TABLES, ServerDatabase, open_database, upsert
from resolver.storage.earlier_runs import EarlierRun
from resolver.storage.run_store import RunStore


class _ServerRow(MappedAsDataclass, DeclarativeBase):
    metadata = TABLES


class IndexedRun(_ServerRow):
    """A row of the index.

    run: its id, which begins with the time of the request, so that ids are in the order of time.
    repository, person: who asked where, in lower case. number: of the issue or pull request with
    the request; subject: of the issue that the run is about. state: a state of a run, "running"
    until it ends, or "deferred" while it waits for the end of an outage. month: YYYY-MM in UTC in
    which it started. started, ended: seconds since 1970. reason: why it ended. cost: US dollars of
    the replies with a known price; unpriced: number of the others. pull_request: its URL;
    pull_number: its number, known as soon as it is open. verdict: of the change's verification, ""
    without a change. issue_url: of the issue or pull request.
    """

    __tablename__ = "resolver_runs"

    run: Mapped[str] = mapped_column(String(200), primary_key=True)
    repository: Mapped[str] = mapped_column(String(300), index=True)
    number: Mapped[int | None]
    subject: Mapped[int | None]
    title: Mapped[str] = mapped_column(Text)
    person: Mapped[str] = mapped_column(String(200), index=True)
    command: Mapped[str] = mapped_column(String(40))
    state: Mapped[str] = mapped_column(String(40), index=True)
    month: Mapped[str] = mapped_column(String(7), index=True)
    started: Mapped[float]
    ended: Mapped[float | None] = mapped_column(default=None)
    reason: Mapped[str] = mapped_column(Text, default="")
    cost: Mapped[float] = mapped_column(default=0.0)
    unpriced: Mapped[int] = mapped_column(default=0)
    pull_request: Mapped[str] = mapped_column(Text, default="")
    pull_number: Mapped[int | None] = mapped_column(default=None)
    verdict: Mapped[str] = mapped_column(String(40), default="")
    issue_url: Mapped[str] = mapped_column(Text, default="")


RUNS: Table = TABLES.tables[IndexedRun.__tablename__]
"""The table of `IndexedRun`."""

MAX_TITLE_LENGTH = 300

DEFERRED = "deferred"
"""State of a run that is repeated when an outage is over."""

ACTIVE = frozenset({RunState.RUNNING.value, DEFERRED})
"""The states of a run that has not ended."""

SUCCESSES = frozenset(
    {
        RunState.FINISHED.value,
        RunState.AWAITING_USER_INPUT.value,
        RunState.AWAITING_CONFIRMATION.value,
    }
)
"""The final states that are not failures."""


@dataclass(frozen=True)
class RunFilter:
    """Restricts the runs that are listed. None restricts nothing.

    repositories: only these, in lower case, are visible to the reader. month: YYYY-MM.
    """

    repositories: frozenset[str]
    repository: str | None = None
    person: str | None = None
    state: str | None = None
    month: str | None = None

    @property
    def wanted(self) -> dict[str, str]:
        """What is chosen of each column."""
        names = ("repository", "person", "state", "month")
        return {name: value for name in names if (value := getattr(self, name))}


@dataclass(frozen=True)
class RunTotals:
    """Sums over runs. name: what they have in common."""

    name: str
    runs: int
    failed: int
    cost: float
    unpriced: int


class RunIndex:
    """The table of runs, created if it does not exist. Thread-safe.

    database: open, or its URL from `parse_database_url`. What was written is durable when the call
    returns. Methods raise DatabaseError.
    """

    def __init__(self, database: URL | ServerDatabase, now: Clock = utc_now) -> None:
        self._database, self._now = open_database(database), now

    def put(self, run: str, trigger: Trigger, changes: Mapping[str, Any]) -> None:
        """Write values into the row of a run, which is created if there is none."""
        now, title = self._now(), trigger.snapshot.title if trigger.snapshot else ""
        new = IndexedRun(
            run=run,
            repository=trigger.repository.lower(),
            number=trigger.number,
            subject=trigger.subject,
            title=title[:MAX_TITLE_LENGTH],
            person=trigger.actor.login.lower(),
            command=trigger.command.value,
            state=RunState.RUNNING.value,
            month=f"{now:%Y-%m}",
            started=now.timestamp(),
        )
        with self._database.writing() as connection:
            upsert(connection, RUNS, {**asdict(new), **changes}, changes)

    def runs_of(self, repository: str, issue: int) -> list[str]:
        """Return the ids of the conversation's runs, in the order in which they started."""
        query = select(RUNS.c.run).where(
            RUNS.c.repository == repository.lower(), RUNS.c.subject == issue
        )
        with self._database.reading() as connection:
            # Ids of the same second are in no order.
            return list(connection.scalars(query.order_by(RUNS.c.started, RUNS.c.run)))

    def issue_of(self, repository: str, pull_request: int) -> int | None:
        """Return the issue that a pull request of Resolver's came from; None if it is unknown."""
        query = select(RUNS.c.subject).where(
            RUNS.c.repository == repository.lower(), RUNS.c.pull_number == pull_request
        )
        with self._database.reading() as connection:
            return connection.scalar(query.order_by(RUNS.c.started.desc()).limit(1))

    def get(self, run: str) -> IndexedRun | None:
        """Return the row of a run; None if there is none."""
        with self._database.reading() as connection:
            row = connection.execute(select(RUNS).where(RUNS.c.run == run)).one_or_none()
        return IndexedRun(**row._mapping) if row is not None else None

    def runs(self, run_filter: RunFilter, before: str | None, limit: int) -> list[IndexedRun]:
        """Return runs, newest first. before: the id of a run; only older runs are returned."""
        query = select(RUNS).where(*_conditions(run_filter))
        if before:
            query = query.where(RUNS.c.run < before)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(RUNS.c.run.desc()).limit(limit)).all()
        return [IndexedRun(**row._mapping) for row in rows]

    def totals_by(self, column: str, run_filter: RunFilter, limit: int) -> list[RunTotals]:
        """Return the sums for each value of a column, the highest cost first; by month, the newest
        first. column: "repository", "person" or "month"."""
        key, cost = RUNS.c[column], func.sum(RUNS.c.cost)
        failed = func.count().filter(RUNS.c.state.not_in(SUCCESSES | ACTIVE))
        query = (
            select(key, func.count(), failed, cost, func.sum(RUNS.c.unpriced))
            .where(*_conditions(run_filter))
            .group_by(key)
            .order_by(key.desc() if column == "month" else cost.desc(), key)
        )
        with self._database.reading() as connection:
            return [RunTotals(*row) for row in connection.execute(query.limit(limit))]

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


@dataclass(frozen=True)
class IndexedRunStore:
    """The runs that a server has executed for one repository. Implements `EarlierRuns`.

    index: has the runs of each conversation. store: has their files. folder: gets the files of
    each run that is fetched, in a folder of its own. Raises DatabaseError and LogError.
    """

    repository: str
    index: RunIndex
    store: RunStore
    folder: Path

    def runs_before(self, issue: int, run: str) -> Iterator[EarlierRun]:
        """Implement `EarlierRuns.runs_before`. Runs whose log can't be resumed are left out."""
        runs = self.index.runs_of(self.repository, issue)
        for id in reversed(runs[: runs.index(run)] if run in runs else runs):
            earlier = self.store.fetch(id, self.folder / id)
            if is_resumable(earlier.log):
                yield earlier


def _conditions(run_filter: RunFilter) -> list[ColumnElement[bool]]:
    visible = RUNS.c.repository.in_(sorted(run_filter.repositories))
    return [visible, *(RUNS.c[name] == value for name, value in run_filter.wanted.items())]
