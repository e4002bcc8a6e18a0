"""Keeps the event logs and files of runs in the server's database, so that any machine can continue
a run. Large files may be in an object store, and the database names the object.

A run has one row that says which claim may write and how far the log has got. Each write changes
that row in its own transaction and only under the same claim. A process whose claim was given to
another one, such as a machine that was suspended, therefore can't write anything any more, whatever
it believes of itself (a fencing token, see
https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html).
"""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    ColumnElement,
    Float,
    Integer,
    LargeBinary,
    Row,
    Select,
    String,
    Table,
    delete,
    insert,
    select,
    update,
)

from resolver.errors import LeaseLost, LogError
from resolver.events.stream import Clock, utc_now
from resolver.storage.blob_store import BlobStore, BlobStoreError, blob_key
from resolver.storage.database import DatabaseError, ServerDatabase, open_database, upsert
from resolver.storage.event_table import EVENTS, read_lines
from resolver.storage.schema import TABLES

logger = logging.getLogger("resolver.storage")

RUNS = Table(
    "resolver_archived_runs",
    TABLES,
    Column("run", String(200), primary_key=True),
    Column("request", BigInteger, nullable=False),
    Column("claim", Integer, nullable=False),
    Column("events", Integer, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("changes", Integer, nullable=False),
)
"""request, claim: the claim that may write. events, digest: number of events and the digest of
their lines. changes: how often a file was changed."""

FILES = Table(
    "resolver_run_files",
    TABLES,
    Column("run", String(200), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("size", Integer, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("changed", Float, nullable=False),
    Column("blob", String(300), nullable=False),
)
"""digest: SHA-256 of the content. changed: seconds since 1970. blob: key of the object that has the
content; "" if `CHUNKS` has it."""

CHUNKS = Table(
    "resolver_run_chunks",
    TABLES,
    Column("run", String(200), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)

CHUNK_BYTES = 1_000_000
"""Size in bytes of a chunk. The database and its driver hold a value in memory several times."""

MIN_BLOB_BYTES = 1_000_001
"""Size in bytes from which a file is stored as an object, if there is an object store."""

MAX_ARCHIVED_BYTES = 100_000_000
"""Maximum size in bytes of a file that is archived or restored."""


@dataclass(frozen=True, order=True)
class RunClaim:
    """The right to write a run; the highest one of a run revokes all others.

    request: position of the request in the queue. claim: how often that request was claimed.
    """

    request: int
    claim: int


@dataclass(frozen=True)
class LogLine:
    """One line of an event log, without a newline, and the kind of its event."""

    kind: str
    text: str


@dataclass(frozen=True)
class LogPosition:
    """A number of lines of an event log and the digest of all of them."""

    events: int = 0
    digest: str = ""

    def after(self, lines: Iterable[bytes]) -> "LogPosition":
        """Return the position after further lines, which have no newline."""
        events, digest = self.events, self.digest
        for line in lines:
            events, digest = events + 1, hashlib.sha256(digest.encode() + line).hexdigest()
        return LogPosition(events, digest)


@dataclass(frozen=True)
class ArchivedFile:
    """A file of a run. See `FILES`."""

    name: str
    size: int
    digest: str
    blob: str = ""


@dataclass(frozen=True)
class ArchivedState:
    """What the archive has of a run. changes: how often a file was changed; 0 if no file was ever
    stored."""

    log: LogPosition
    changes: int


class RunArchive:
    """The tables of runs, created if they do not exist. Thread-safe.

    database: open, or its URL from `parse_database_url`. blobs: gets files of `MIN_BLOB_BYTES`
    and more; None to keep all in the database. Methods raise DatabaseError if the database or the
    object store can't be used, and those that write raise LeaseLost if a newer claim has been
    recorded.
    """

    def __init__(
        self,
        database: URL | ServerDatabase,
        now: Clock = utc_now,
        blobs: BlobStore | None = None,
    ) -> None:
        self._database, self._blobs = open_database(database), blobs
        self._now = now

    def record_claim(self, run: str, claim: RunClaim) -> ArchivedState:
        """Revoke the older claims of the run and return what is stored of it."""
        row = {"run": run, "request": claim.request, "claim": claim.claim}
        empty = {"events": 0, "digest": "", "changes": 0}
        with self._database.writing() as connection:
            upsert(connection, RUNS, row | empty, {})
            stored = connection.execute(_run_query(run).with_for_update()).one()
            if _claim_of(stored) > claim:
                raise _taken_over(run)
            connection.execute(update(RUNS).where(RUNS.c.run == run).values(row))
        return _state_of(stored)

    def state(self, run: str) -> ArchivedState | None:
        """Return what is stored of a run; None if nothing is."""
        with self._database.reading() as connection:
            row = connection.execute(_run_query(run)).first()
        return None if row is None else _state_of(row)

    def append(
        self, run: str, claim: RunClaim, position: LogPosition, lines: Sequence[LogLine]
    ) -> LogPosition:
        """Add lines after `position`, in one transaction, and return the position after them.

        It has no effect if exactly these lines are there already, so it can be repeated when the
        connection was lost. Raises LogError if other lines are there.
        """
        after = position.after(line.text.encode() for line in lines)
        is_at_position = (RUNS.c.events == position.events, RUNS.c.digest == position.digest)
        rows = [
            {"run": run, "id": position.events + number, "kind": line.kind, "data": line.text}
            for number, line in enumerate(lines)
        ]
        with self._database.writing() as connection:
            moved = update(RUNS).where(*_is_claimed(run, claim), *is_at_position)
            values = {"events": after.events, "digest": after.digest}
            if connection.execute(moved.values(values)).rowcount:
                connection.execute(insert(EVENTS), rows)
                return after
            stored = connection.execute(_run_query(run)).first()
        if stored is None or _claim_of(stored) != claim:
            raise _taken_over(run)
        if _state_of(stored).log != after:
            raise LogError(
                f"the database has {stored.events} events of run {run}, and others than this "
                f"process, which has {position.events}",
                "let only one server process work on a run",
            )
        return after

    def clear_log(self, run: str, claim: RunClaim) -> None:
        """Remove all events of the run, because its log starts over."""
        with self._database.writing() as connection:
            cleared = update(RUNS).where(*_is_claimed(run, claim)).values(events=0, digest="")
            if not connection.execute(cleared).rowcount:
                raise _taken_over(run)
            connection.execute(delete(EVENTS).where(EVENTS.c.run == run))

    def lines(self, run: str, start: int, end: int) -> Iterator[bytes]:
        """Return the lines of the events from number `start` to before `end`, without newlines."""
        return map(str.encode, read_lines(self._database.reading, run, start, end))

    def put_file(self, run: str, claim: RunClaim, name: str, data: bytes) -> None:
        """Store a file of the run; an earlier one of that name is replaced."""
        digest = hashlib.sha256(data).hexdigest()
        blob = self._put_blob(run, name, digest, data)
        row = {
            "size": len(data),
            "digest": digest,
            "changed": self._now().timestamp(),
            "blob": blob,
        }
        self._replace_file(run, claim, name, row, () if blob else _split(data))

    def _put_blob(self, run: str, name: str, digest: str, data: bytes) -> str:
        """Store a large file as an object and return its key; "" if it belongs in the database.

        While the object store can't be used, every file does, so that nothing is lost and the run
        need not wait. An object that this one replaces is kept until the run is purged: a process
        that has lost its claim must not be able to remove what another one has stored.
        """
        if self._blobs is None or len(data) < MIN_BLOB_BYTES:
            return ""
        key = blob_key(run, digest)
        try:
            self._blobs.put(key, data)
        except BlobStoreError as error:
            logger.warning("%s of run %s is stored in the database: %s", name, run, error.what)
            return ""
        return key

    def remove_file(self, run: str, claim: RunClaim, name: str) -> None:
        """Remove a file of the run."""
        self._replace_file(run, claim, name, None, ())

    def _replace_file(
        self,
        run: str,
        claim: RunClaim,
        name: str,
        row: dict[str, Any] | None,
        chunks: Iterable[bytes],
    ) -> None:
        key = {"run": run, "name": name}
        data = [key | {"number": number, "data": chunk} for number, chunk in enumerate(chunks)]
        with self._database.writing() as connection:
            changed = update(RUNS).where(*_is_claimed(run, claim))
            if not connection.execute(changed.values(changes=RUNS.c.changes + 1)).rowcount:
                raise _taken_over(run)
            for table in (FILES, CHUNKS):
                is_file = (table.c.run == run, table.c.name == name)
                connection.execute(delete(table).where(*is_file))
            if row is not None:
                connection.execute(insert(FILES), key | row)
            if data:
                connection.execute(insert(CHUNKS), data)

    def files(self, run: str) -> list[ArchivedFile]:
        """Return the files of the run."""
        table = FILES.c
        query = select(table.name, table.size, table.digest, table.blob).where(table.run == run)
        with self._database.reading() as connection:
            return [ArchivedFile(*row) for row in connection.execute(query.order_by(table.name))]

    def read_file(self, run: str, file: ArchivedFile) -> bytes:
        """Return the content of a file. Raises LogError if it is missing or damaged."""
        if file.size > MAX_ARCHIVED_BYTES:
            raise LogError(f"the stored file {file.name} of run {run} is too large")
        data = self._read_blob(run, file) if file.blob else self._read_chunks(run, file.name)
        if len(data) != file.size or hashlib.sha256(data).hexdigest() != file.digest:
            raise LogError(f"the stored file {file.name} of run {run} is damaged or was replaced")
        return data

    def _read_blob(self, run: str, file: ArchivedFile) -> bytes:
        if self._blobs is None:
            raise DatabaseError(
                f"the file {file.name} of run {run} is in an object store, and there is none",
                "set RESOLVER_BLOB_STORE as in the process that has stored it",
            )
        return self._blobs.get(file.blob, file.size) or b""

    def _read_chunks(self, run: str, name: str) -> bytes:
        table = CHUNKS.c
        query = select(table.data).where(table.run == run, table.name == name)
        limit = MAX_ARCHIVED_BYTES // CHUNK_BYTES + 1
        with self._database.reading() as connection:
            return b"".join(connection.scalars(query.order_by(table.number).limit(limit)))

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


def _run_query(run: str) -> Select[Any]:
    return select(RUNS).where(RUNS.c.run == run)


def _is_claimed(run: str, claim: RunClaim) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions that the run's row exists and that this claim may write."""
    return (RUNS.c.run == run, RUNS.c.request == claim.request, RUNS.c.claim == claim.claim)


def _claim_of(row: Row[Any]) -> RunClaim:
    return RunClaim(row.request, row.claim)


def _state_of(row: Row[Any]) -> ArchivedState:
    return ArchivedState(LogPosition(row.events, row.digest), row.changes)


def _taken_over(run: str) -> LeaseLost:
    return LeaseLost(f"another process has taken over run {run}, or its data was removed")


def _split(data: bytes) -> Iterator[bytes]:
    """Yield the data in chunks."""
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]
