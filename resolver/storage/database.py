"""The server's database, SQLite or PostgreSQL: its tables and connections, and readable error
messages.

A module that uses a table defines it in `TABLES`, so whoever uses one finds it created.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    MetaData,
    create_engine,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy import event as hooks
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import Table

from resolver.errors import ResolverError, UsageError

TABLES = MetaData()
"""All tables of the server."""

_CREATION_LOCK = 7_365_736_764_117_106
"""Key of an advisory lock. Any that other programs don't use will do."""

_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}

BUSY_SECONDS = 30
"""Timeout in seconds for connecting to PostgreSQL, and for waiting for another writer in SQLite."""

_DAMAGES = {"file is not a database", "database disk image is malformed"}
"""What SQLite says about a damaged file: https://www.sqlite.org/rescode.html"""

MAX_OVERFLOW = 25
"""Maximum number of connections beyond the five that a pool keeps, when many runs write at once."""

IDLE_SECONDS = 20
"""Time after which PostgreSQL ends a transaction whose process sends nothing."""

READS = {"resolver_reads": True}
"""Execution options of a read-only transaction, which waits for no writer in SQLite."""


def parse_database_url(url: str, to_write: bool = True) -> URL:
    """Return the URL of the database; the path of a SQLite file is made absolute.

    to_write: create the file and its folder if they do not exist. Raises UsageError if `url` is no
    valid address or the file can't be written.
    """
    next_step = (
        "set RESOLVER_DATABASE_URL, for example to sqlite:///resolver.db or postgresql://HOST/NAME"
    )
    try:
        parsed = make_url(url)
    except (SQLAlchemyError, ValueError):
        raise UsageError("the database's address can't be read", next_step) from None
    if parsed.get_backend_name() not in _DRIVERS:
        raise UsageError(f"{parsed.drivername} is not a supported database", next_step)
    if parsed.get_backend_name() != "sqlite":
        return parsed
    if not parsed.database or parsed.database == ":memory:":
        raise UsageError("an in-memory database would lose the deliveries", next_step)
    file = Path(parsed.database).absolute()
    try:
        if to_write:
            file.parent.mkdir(parents=True, exist_ok=True)
            # It contains text from private repositories, so only its owner may read it.
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        what = f"the database {file} can't be written: {error.strerror}"
        raise UsageError(what, next_step) from error
    return parsed.set(database=str(file))


class MissingDatabase(UsageError):
    """There is no database at the address in the settings."""


class DatabaseError(ResolverError):
    """The database is unavailable, full, or rejects a statement."""


class ServerDatabase:
    """Runs transactions on one database. Thread-safe.

    Missing tables are created.

    url: as returned by `parse_database_url`. Raises UsageError if the database can't be used, and
    DatabaseError if that happens later. No error contains the password.
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self._engine = _create_engine(url)
        # SQLite has one writer at a time. Threads that wait for it poll, and some wait much longer
        # than others; for a lock of this process they queue.
        self._writer = threading.Lock() if url.get_backend_name() == "sqlite" else nullcontext()
        self._reading = self._engine.execution_options(**READS)
        try:
            with self.writing() as connection:
                self._create_tables(connection)
        except DatabaseError as error:
            self.close()
            raise UsageError(error.what, error.next_step) from error

    @staticmethod
    def _create_tables(connection: Connection) -> None:
        if connection.dialect.name == "postgresql":
            # Processes that start together do this one after the other.
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATION_LOCK})
        if not TABLES.tables.keys() <= set(inspect(connection).get_table_names()):
            TABLES.create_all(connection)
        for table in TABLES.tables.values():  # so that a damaged file is found at the start
            connection.execute(select(table).limit(1)).first()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that is committed at the end. In SQLite there is no other writer
        meanwhile."""
        with self.translating_errors(), self._writer, self._engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read-only transaction."""
        with self.translating_errors(), self._reading.begin() as connection:
            yield connection

    def check(self, table: Table) -> None:
        """Raise DatabaseError unless the table can be read."""
        file = self.url.database
        if self.url.get_backend_name() == "sqlite" and not Path(str(file)).is_file():
            # An open connection would continue to use the file that was removed.
            raise self._error("its file no longer exists")
        with self.reading() as connection:
            connection.execute(table.select().limit(1)).first()

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def translating_errors(self) -> Iterator[None]:
        """Turn errors of SQLAlchemy into DatabaseError."""
        try:
            yield
        except SQLAlchemyError as error:
            raise self._error(first_line(error)) from error

    def _error(self, reason: str) -> DatabaseError:
        name = self.url.render_as_string(hide_password=True)
        next_step = (
            "check RESOLVER_DATABASE_URL, that the database runs, and that its disk has room"
        )
        if reason in _DAMAGES:
            next_step = "restore the file from a backup, or move it away to start with an empty one"
        return DatabaseError(f"the database {name} can't be used: {reason}", next_step)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message: for one of SQLAlchemy, of the driver's."""
    message = str(getattr(error, "orig", None) or error).strip()
    return message.splitlines()[0] if message else "no reason is given"


def open_database(database: URL | ServerDatabase) -> ServerDatabase:
    """Return the database; the same one, with its connections, if it is open already.

    Each pool keeps its connections, and PostgreSQL admits 100 by default: the stores of a process
    share one. Raises what `ServerDatabase` raises.
    """
    return database if isinstance(database, ServerDatabase) else ServerDatabase(database)


def upsert(
    connection: Connection, table: Table, row: Mapping[str, Any], changes: Mapping[str, Any]
) -> None:
    """Insert a row. If the table has one with its primary key, make the changes, if there are any,
    to that one.

    This is one statement, so that two processes that store the same row at once both succeed.
    """
    # INSERT of the database's dialect, which can have a clause ON CONFLICT.
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    insertion = dialect.insert(table).values(row)
    keys = list(table.primary_key)
    connection.execute(
        insertion.on_conflict_do_update(index_elements=keys, set_=changes)
        if changes
        else insertion.on_conflict_do_nothing(index_elements=keys)
    )


@contextmanager
def existing_database(address: str) -> Iterator[ServerDatabase]:
    """Open the database of a server for the block. A missing SQLite file is not created.

    address: as in the settings. Raises MissingDatabase if the file does not exist, and UsageError
    if the database can't be used.
    """
    url = parse_database_url(address, to_write=False)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).is_file():
        raise MissingDatabase(
            f"there is no database {url.database}",
            "set RESOLVER_DATABASE_URL to the server's, or run this in the server's folder",
        )
    with closing(ServerDatabase(url)) as database:
        yield database


def _create_engine(url: URL) -> Engine:
    backend = url.get_backend_name()
    engine = create_engine(
        url.set(drivername=_DRIVERS[backend]),
        pool_pre_ping=True,
        max_overflow=MAX_OVERFLOW,
        connect_args={"timeout" if backend == "sqlite" else "connect_timeout": BUSY_SECONDS},
    )
    if backend == "sqlite":
        # Source: https://docs.sqlalchemy.org/en/20/dialects/sqlite.html (serializable isolation)
        hooks.listen(engine, "connect", _set_up_sqlite)
        hooks.listen(engine, "begin", _begin_transaction)
    else:
        hooks.listen(engine, "connect", _set_up_postgresql)
    return engine


def _set_up_postgresql(connection: Any, _record: object) -> None:
    # A process that is suspended within a transaction must not hold its locks forever: the other
    # processes could claim nothing. Source:
    # https://www.postgresql.org/docs/current/runtime-config-client.html
    connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'").close()
    connection.commit()


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    # With a write-ahead log readers and the writer do not wait for each other. The mode is stored
    # in the file, so it also applies to the connections of DBOS. Source:
    # https://www.sqlite.org/wal.html
    connection.execute("PRAGMA journal_mode=WAL").close()
    connection.execute("PRAGMA synchronous=FULL").close()


def _begin_transaction(connection: Connection) -> None:
    is_read_only = connection.get_execution_options().get("resolver_reads", False)
    # IMMEDIATE takes the write lock at the beginning: a transaction that reads first and writes
    # later could fail with SQLITE_BUSY without waiting. Source:
    # https://www.sqlite.org/lang_transaction.html
    connection.exec_driver_sql("BEGIN" if is_read_only else "BEGIN IMMEDIATE")
