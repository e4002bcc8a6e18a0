"""The history of each conversation that a server knows: its runs, the pull requests they opened,
and requests to stop.

It is a table of the server's database, so that a comment finds the last run on any machine.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError
from sqlalchemy import (
    URL,
    Column,
    Connection,
    Float,
    String,
    Table,
    Text,
    select,
    update,
)

from resolver.events.run_log import is_resumable
from resolver.events.stream import Clock, utc_now
from resolver.models.base import FrozenModel
from resolver.models.run import Trigger
from resolver.storage.database import ServerDatabase, open_database
from resolver.storage.earlier_runs import EarlierRun
from resolver.storage.run_store import RunStore
from resolver.storage.schema import TABLES, position_column

HISTORY = Table(
    "resolver_issue_history",
    TABLES,
    position_column(),
    Column("conversation", String(400), nullable=False, index=True),
    Column("entry", Text, nullable=False),
    Column("identity", String(64), nullable=False, unique=True),
    Column("recorded_at", Float, nullable=False),
)
"""conversation: OWNER/NAME#NUMBER in lower case. entry: an `IssueHistoryEntry` as JSON. identity:
digest that is the same if an entry is recorded a second time. recorded_at: when that was last
(seconds since 1970)."""

MAX_ENTRIES = 10_000
"""Maximum number of entries of a conversation that are read: its newest ones."""


class IssueHistoryEntry(FrozenModel):
    """One entry of a history: a run that started, the issue that a pull request belongs to, or a
    stop.

    number: the pull request's issue. stop: the request to stop.
    """

    kind: Literal["run", "issue", "stop"]
    run: str = ""
    number: int | None = None
    stop: Trigger | None = None


class IssueHistories:
    """The table of histories, created if it does not exist. Thread-safe.

    database: open, or its URL from `parse_database_url`. An entry is durable when the call
    returns. Methods raise DatabaseError if the database can't be used.
    """

    def __init__(self, database: URL | ServerDatabase, now: Clock = utc_now) -> None:
        self._now = now
        self._database = open_database(database)
        insertion = self._database.insert(HISTORY)
        self._insertion = insertion.on_conflict_do_update(
            index_elements=["identity"], set_={"recorded_at": insertion.excluded.recorded_at}
        )

    def record_run(self, trigger: Trigger, run: str) -> None:
        """Record that `run` works for the conversation. Repeated calls have no effect."""
        entry = IssueHistoryEntry(kind="run", run=run)
        self._append(_conversation(trigger.repository, trigger.subject), entry)

    def record_pull_request(self, trigger: Trigger, pull_request: int) -> None:
        """Record the pull request that a run of the conversation opened."""
        entry = IssueHistoryEntry(kind="issue", number=trigger.subject)
        self._append(_conversation(trigger.repository, pull_request), entry)

    def record_stop(self, trigger: Trigger) -> None:
        """Record that everything that was asked for before this request is to stop."""
        stop = trigger.model_copy(update={"snapshot": None})
        entry = IssueHistoryEntry(kind="stop", stop=stop)
        self._append(_conversation(trigger.repository, trigger.subject), entry)

    def runs(self, repository: str, issue: int) -> list[str]:
        """Return the ids of the conversation's runs, oldest first."""
        entries = self._read(_conversation(repository, issue))
        return [entry.run for entry in entries if entry.kind == "run"]

    def issue_of(self, repository: str, pull_request: int) -> int | None:
        """Return the issue that a pull request of Resolver's came from; None if it is unknown."""
        return _last_issue(self._read(_conversation(repository, pull_request)))

    def stop_after(self, trigger: Trigger) -> str | None:
        """Return the login of a person who sent a stop after this request; None if nobody did."""
        for entry in self._read(_conversation(trigger.repository, trigger.subject)):
            if entry.stop is not None and entry.stop.came_after(trigger):
                return entry.stop.actor.login
        return None

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def _append(self, conversation: str, entry: IssueHistoryEntry) -> None:
        data, recorded_at = entry.model_dump_json(exclude_none=True), self._now().timestamp()
        identity = f"{conversation} {data}"
        with self._database.writing() as connection:
            if entry.kind == "issue":
                issue = _last_issue(_read_rows(connection, conversation))
                if entry.number == issue:
                    is_equal = (HISTORY.c.conversation == conversation) & (HISTORY.c.entry == data)
                    change = update(HISTORY).where(is_equal)
                    connection.execute(change.values(recorded_at=recorded_at))
                    return
                # the issue may change and change back, so an equal entry may be a new one
                identity = f"{conversation} {issue} {data}"
            digest = hashlib.sha256(identity.encode()).hexdigest()
            row = {"conversation": conversation, "entry": data, "identity": digest}
            connection.execute(self._insertion, row | {"recorded_at": recorded_at})

    def _read(self, conversation: str) -> list[IssueHistoryEntry]:
        with self._database.reading() as connection:
            return _read_rows(connection, conversation)


@dataclass(frozen=True)
class HistoryRunStore:
    """The runs that a server has executed for one repository. Implements `EarlierRuns`.

    histories: has the runs of each conversation. store: has their files. folder: gets the files of
    each run that is fetched, in a folder of its own. Raises DatabaseError and LogError.
    """

    repository: str
    histories: IssueHistories
    store: RunStore
    folder: Path

    def runs_before(self, issue: int, run: str) -> Iterator[EarlierRun]:
        """Implement `EarlierRuns.runs_before`. Runs whose log can't be resumed are left out."""
        # By the order in which they started: ids of the same second are in no order.
        runs = self.histories.runs(self.repository, issue)
        for id in reversed(runs[: runs.index(run)] if run in runs else runs):
            earlier = self.store.fetch(id, self.folder / id)
            if is_resumable(earlier.log):
                yield earlier


def _conversation(repository: str, number: int | None) -> str:
    return f"{repository.lower()}#{number}"


def _last_issue(entries: Iterable[IssueHistoryEntry]) -> int | None:
    issues = [entry.number for entry in entries if entry.kind == "issue"]
    return issues[-1] if issues else None


def _read_rows(connection: Connection, conversation: str) -> list[IssueHistoryEntry]:
    """Return the newest entries of a conversation, oldest first."""
    table = HISTORY.c
    query = select(table.entry).where(table.conversation == conversation)
    newest = connection.scalars(query.order_by(table.position.desc()).limit(MAX_ENTRIES)).all()
    return list(_parse(reversed(newest)))


def _parse(lines: Iterable[str]) -> Iterator[IssueHistoryEntry]:
    """Yield the entries of the lines that can be read."""
    for line in lines:
        try:
            yield IssueHistoryEntry.model_validate_json(line)
        except ValidationError:
            continue
