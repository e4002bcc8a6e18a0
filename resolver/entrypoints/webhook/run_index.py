"""The index of all runs of the server: one row for each, for the list of runs and the sums of cost.

The rows are written while runs start, pass their stages and end. They only describe the runs:
nothing that a run does depends on them, and an error never ends a run.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Float,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    Text,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.sql import ColumnElement

from resolver.entrypoints.webhook.database import DatabaseError, ServerDatabase
from resolver.entrypoints.webhook.metrics import Pipeline
from resolver.entrypoints.webhook.request_queue import StartedRequest
from resolver.entrypoints.webhook.worker import Work, WorkResult
from resolver.errors import LeaseLost, ResolverError
from resolver.events.run_log import RunLog, start_position
from resolver.events.state import State
from resolver.events.stream import Clock, utc_now
from resolver.github.forge import Forge
from resolver.models.run import RunState, Trigger
from resolver.runs.common import run_id
from resolver.runs.stages import RunRequest, RunResult, StageValues

logger = logging.getLogger("resolver.entrypoints.webhook")

RUNS = Table(
    "resolver_runs",
    MetaData(),
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
)
"""run: its id, which begins with the time of the request, so that ids are in the order of time.
repository, requester: in lower case. kind, command: of the trigger. state: a state of a run,
"running" until it ends, or "deferred" while it waits for the end of an outage. stage: the last one
that is complete. reason, cause: why it ended; cause is one of a few words, "" for a success.
day: date in UTC on which it started. started, ended: seconds since 1970. cost: US dollars of the
replies with a known price; unpriced: number of the others. pull_request: its URL."""

DEFERRED = "deferred"
"""State of a run that is repeated when an outage is over."""

SUCCESSES = frozenset(
    {
        RunState.FINISHED.value,
        RunState.AWAITING_USER_INPUT.value,
        RunState.AWAITING_CONFIRMATION.value,
    }
)
"""The final states that are no failures."""

ACTIVE = frozenset({RunState.RUNNING.value, DEFERRED})
"""The states of a run that has not ended."""

MAX_TITLE_LENGTH = 300
MAX_REASON_LENGTH = 1_000


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

    url: as returned by `database.parse_database_url`. Methods raise DatabaseError.
    """

    def __init__(self, url: URL) -> None:
        self._database = ServerDatabase(url)

    def put(self, run: str, new: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
        """Write the row of a run. new: values of a row that does not exist yet. changes: values
        that are set in any case."""
        with self._database.writing() as connection:
            _put(connection, run, new, changes)

    def get(self, run: str) -> IndexedRun | None:
        """Return the row of a run; None if there is none."""
        with self._database.reading() as connection:
            row = connection.execute(select(RUNS).where(RUNS.c.run == run)).one_or_none()
        return IndexedRun(*row) if row is not None else None

    def runs(self, wanted: RunFilter, before: str, limit: int) -> list[IndexedRun]:
        """Return runs, newest first. before: the id of a run; only older runs are returned, ""
        for no such restriction."""
        query = select(RUNS).where(*_conditions(wanted))
        if before:
            query = query.where(RUNS.c.run < before)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(RUNS.c.run.desc()).limit(limit)).all()
        return [IndexedRun(*row) for row in rows]

    def total(self, wanted: RunFilter) -> RunTotals:
        """Return the sums over all runs."""
        with self._database.reading() as connection:
            row = connection.execute(_sums(wanted)).one()
        return RunTotals("", *row)

    def totals_by(self, column: str, wanted: RunFilter, limit: int) -> list[RunTotals]:
        """Return the sums for each value of a column, the highest cost first; by month, the newest
        first. column: "repository", "requester" or "month"."""
        month = func.substr(RUNS.c.day, 1, 7)
        key: ColumnElement[str] = month if column == "month" else RUNS.c[column]
        order = month.desc() if column == "month" else func.sum(RUNS.c.cost).desc()
        query = _sums(wanted, key).group_by(key).order_by(order, key).limit(limit)
        with self._database.reading() as connection:
            return [RunTotals(*row) for row in connection.execute(query)]

    def failures(self, wanted: RunFilter, limit: int) -> list[tuple[str, int]]:
        """Return the causes of failures with the number of runs, the most frequent first."""
        number = func.count()
        query = (
            select(RUNS.c.cause, number)
            .where(RUNS.c.cause != "", *_conditions(wanted))
            .group_by(RUNS.c.cause)
            .order_by(number.desc(), RUNS.c.cause)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [(cause, count) for cause, count in connection.execute(query)]

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


def _put(
    connection: Connection, run: str, new: Mapping[str, Any], changes: Mapping[str, Any]
) -> None:
    key = RUNS.c.run == run
    is_known = connection.scalar(select(RUNS.c.run).where(key)) is not None
    if not is_known:
        connection.execute(insert(RUNS).values({"run": run, **_EMPTY, **new, **changes}))
    elif changes:
        connection.execute(update(RUNS).where(key).values(dict(changes)))


_EMPTY: Mapping[str, Any] = {
    "stage": "", "reason": "", "cause": "", "model": "", "ended": None, "cost": 0.0, "unpriced": 0,
    "tokens_in": 0, "tokens_out": 0, "branch": "", "pull_request": "", "executor": "",
}  # fmt: skip


def _conditions(wanted: RunFilter) -> list[ColumnElement[bool]]:
    columns = RUNS.c
    conditions: list[ColumnElement[bool]] = []
    if wanted.repository:
        conditions.append(columns.repository == wanted.repository.lower())
    if wanted.state:
        conditions.append(columns.state == wanted.state)
    if wanted.requester:
        conditions.append(columns.requester == wanted.requester.lower())
    if wanted.min_cost > 0:
        conditions.append(columns.cost >= wanted.min_cost)
    if wanted.month:
        conditions.append(func.substr(columns.day, 1, 7) == wanted.month)
    if wanted.repositories is not None:
        conditions.append(columns.repository.in_(sorted(wanted.repositories)))
    return conditions


def _sums(wanted: RunFilter, *keys: ColumnElement[str]) -> Select[*tuple[Any, ...]]:
    columns = RUNS.c
    failed = func.count().filter(columns.cause != "")
    sums = (columns.cost, columns.unpriced, columns.tokens_in, columns.tokens_out)
    totals = (func.coalesce(func.sum(column), 0) for column in sums)
    return select(*keys, func.count(), failed, *totals).where(*_conditions(wanted))


class RunIndexer:
    """Writes the rows of the runs that this process executes. Never raises.

    executor: names this process.
    """

    def __init__(self, index: RunIndex, executor: str = "", now: Clock = utc_now) -> None:
        self._index, self._executor, self._now = index, executor, now

    def recording(self, execute: Pipeline) -> Pipeline:
        """Return `execute`, with the start, the stages and the end of each run recorded."""

        def recorded(request: RunRequest, forge: Forge) -> RunResult:
            stages = _StageWriter(self, request.observe)
            self._write(request.run, request.trigger, self._started())
            result = execute(replace(request, observe=stages.observe), forge)
            self._write(request.run, request.trigger, self._ended(result))
            return result

        return recorded

    def recording_work(self, work: Work) -> Work:
        """Return `work`, with the end recorded of those runs that are not executed, because they
        were stopped or given up, and of those that an outage defers."""

        def recorded(started: StartedRequest) -> WorkResult:
            trigger = started.request.trigger
            try:
                result = work(started)
            except LeaseLost:  # another process writes the row
                raise
            except ResolverError as error:
                run = run_id(trigger.key, trigger.at)
                reason = {"reason": error.what[:MAX_REASON_LENGTH], "cause": error.cause}
                self._write(run, trigger, {"state": DEFERRED, **reason})
                raise
            if result.state in {RunState.STOPPED.value, RunState.ERROR.value}:
                self._close(result, trigger)
            return result

        return recorded

    def record_stage(self, values: StageValues, stage: str) -> None:
        """Record what is known of the run after a stage."""
        task = values.task
        changes: dict[str, Any] = {"stage": stage, "model": values.current_settings.model}
        if task is not None:
            changes["title"] = task.title[:MAX_TITLE_LENGTH]
        request = values.request
        changes |= _usage(values.log, request.run)
        self._write(request.run, request.trigger, changes)

    def _close(self, result: WorkResult, trigger: Trigger) -> None:
        """Record the end of a run that was not executed. A run that was has its end recorded."""
        ended = self._now().timestamp()
        try:
            row = self._index.get(result.run)
        except DatabaseError as error:
            logger.warning("the index of runs can't be read: %s", error.what)
            return
        if row is None or row.state in ACTIVE:
            changes = {"state": result.state, "cause": result.state, "ended": ended}
            self._write(result.run, trigger, changes)

    def _started(self) -> dict[str, Any]:
        return {
            "state": RunState.RUNNING.value, "reason": "", "cause": "", "ended": None,
            "executor": self._executor,
        }  # fmt: skip

    def _ended(self, result: RunResult) -> dict[str, Any]:
        outcome = result.outcome_file
        pull = outcome.pull_request or outcome.earlier.pull_request
        values: dict[str, Any] = {
            "state": outcome.state.value,
            "reason": outcome.reason[:MAX_REASON_LENGTH],
            "cause": _cause(result),
            "model": outcome.model,
            "ended": self._now().timestamp(),
            "branch": outcome.branch or outcome.earlier.branch or "",
            "pull_request": pull.url if pull is not None else "",
        }
        values |= _usage(result.log, result.request.run)
        if result.report.task is not None:
            values["title"] = result.report.task.title[:MAX_TITLE_LENGTH]
        return values

    def _write(self, run: str, trigger: Trigger, changes: Mapping[str, Any]) -> None:
        try:
            self._index.put(run, _new_row(trigger, self._now()), changes)
        except DatabaseError as error:
            logger.warning("the index of runs can't be written: %s", error.what)


@dataclass
class _StageWriter:
    """Records each stage of one run once. before: is called with the same values first."""

    indexer: RunIndexer
    before: Callable[[StageValues], None]
    earlier: StageValues | None = None

    def observe(self, values: StageValues) -> None:
        """Record the stages that were reached. See `RunRequest.observe`."""
        self.before(values)
        reached: Sequence[str] = ("accepted",)
        if self.earlier is not None:
            reached = values.reached_since(self.earlier)
        self.earlier = values
        if reached:
            self.indexer.record_stage(values, reached[-1])


def _usage(log: RunLog | None, run: str) -> dict[str, Any]:
    """Return what the run has used so far, without the earlier run whose log it continues."""
    if log is None:
        return {}
    events = log.state.events
    state, earlier = log.state, State.fold(events[: start_position(events, run)])
    return {
        "cost": state.priced - earlier.priced,
        "unpriced": state.unpriced - earlier.unpriced,
        "tokens_in": state.tokens.input - earlier.tokens.input,
        "tokens_out": state.tokens.output - earlier.tokens.output,
    }


def _new_row(trigger: Trigger, now: datetime) -> dict[str, Any]:
    title = trigger.snapshot.title if trigger.snapshot else ""
    return {
        "repository": trigger.repository.lower(),
        "number": trigger.number,
        "title": title[:MAX_TITLE_LENGTH],
        "requester": trigger.actor.login.lower(),
        "kind": trigger.kind.value,
        "command": trigger.command.value,
        "state": RunState.RUNNING.value,
        "day": f"{now.astimezone(UTC):%Y-%m-%d}",
        "started": now.timestamp(),
    }


def _cause(result: RunResult) -> str:
    """Return the cause of a failure in a word or two; "" if the run succeeded."""
    outcome = result.outcome_file
    if outcome.state.value in SUCCESSES:
        return ""
    if result.outage:
        return result.outage
    if outcome.limit:
        return f"limit: {outcome.limit}"
    failure = result.failure
    if failure is not None:
        return failure.cause or failure.kind
    because = result.outcome.because if result.outcome else ""
    return because or outcome.state.value


def restrict(wanted: RunFilter, repositories: Collection[str]) -> RunFilter:
    """Return the filter, restricted to the repositories that a person can read."""
    return replace(wanted, repositories=frozenset(each.lower() for each in repositories))
