"""Event store in a database: one table for many runs, on SQLite or PostgreSQL.

A log is opened by its location: a file, the folder of a run, or a run in a database.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    URL,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    create_engine,
    func,
    insert,
    inspect,
    make_url,
    select,
)
from sqlalchemy import event as sqlalchemy_events
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError

from resolver.errors import LogError
from resolver.events.log import Event, check_lines, read_log, stored_line
from resolver.events.stream import require_next

EVENTS = Table(
    "resolver_events",
    MetaData(),
    Column("run", String(200), primary_key=True),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(100), nullable=False),
    Column("data", JSON, nullable=False),
)

DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}

WRITE_SETTINGS = {
    "sqlite": ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"),
    "postgresql": ("SET synchronous_commit = on",),
}
"""Statements that make a commit survive a crash, independent of the server's defaults.

See https://www.sqlite.org/pragma.html#pragma_synchronous and
https://www.postgresql.org/docs/current/wal-async-commit.html.
"""

PAGE_ROWS = 500
"""Number of rows read at once."""

MAX_LISTED_RUNS = 10
"""Number of runs that an error message lists."""


class SqlStore:
    """The events of one run in a database, committed before `append` returns.

    url: "sqlite:///FILE" or "postgresql://USER:PASSWORD@HOST/DATABASE". The password never appears
        in an error message. The table is created if it is missing.
    run: the key of the run.

    Two stores may be open on one run. If both append the same id, one of them gets a LogError.
    """

    def __init__(self, url: str, run: str) -> None:
        self._run = run
        self._database = Database(url, for_writing=True)
        try:
            with self._database.connect() as connection:
                _create_table(connection)
                self._event_count = _event_count(connection, run)
        except BaseException:
            self.close()
            raise

    def append(self, event: Event) -> None:
        line = stored_line(event)
        require_next(event, self._event_count)
        row = {"run": self._run, "id": event.id, "kind": event.kind, "data": line}
        try:
            with self._database.connect() as connection:
                connection.execute(insert(EVENTS), row)
        except BaseException:
            # The connection may have been lost, or a signal may have arrived, after the commit.
            with suppress(LogError):
                self._event_count += self._is_stored(event.id, line)
            raise
        self._event_count += 1

    def __iter__(self) -> Iterator[Event]:
        return self._database.events(self._run)

    def __len__(self) -> int:
        return self._event_count

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def _is_stored(self, id: int, line: str) -> bool:
        query = select(EVENTS.c.data).where(EVENTS.c.run == self._run, EVENTS.c.id == id)
        with self._database.connect() as connection:
            return bool(connection.scalar(query) == line)


class Database:
    """A database with events. All its errors are raised as LogError."""

    def __init__(self, url: str, for_writing: bool = False) -> None:
        parsed = _parse_url(url, for_writing)
        self.name = parsed.render_as_string(hide_password=True)
        self._engine = _create_engine(parsed, for_writing)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Open a transaction, which is committed at the end of the block."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except IntegrityError as error:
            raise LogError(
                f"{self.name}: another process has written this event of the run",
                "let only one process work on a run",
            ) from error
        except SQLAlchemyError as error:
            reason = str(error.orig if isinstance(error, DBAPIError) else error)
            raise LogError(
                f"{self.name}: {reason.strip().splitlines()[0]}",
                "check that the database is there and that it can be reached",
            ) from error

    def events(self, run: str) -> Iterator[Event]:
        """Return all events of a run, checking that their numbers have no gap."""
        return check_lines(f"{self.name}#{run}", "row", self._lines(run))

    def runs(self, limit: int) -> list[str]:
        """Return the keys of the runs, `limit` at most."""
        with self.connect() as connection:
            if not inspect(connection).has_table(EVENTS.name):
                return []
            return list(connection.scalars(select(EVENTS.c.run).distinct().limit(limit)))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _lines(self, run: str) -> Iterator[str]:
        page = select(EVENTS.c.id, EVENTS.c.data).order_by(EVENTS.c.id).limit(PAGE_ROWS)
        last_id = None
        while True:
            query = page.where(EVENTS.c.run == run)
            if last_id is not None:
                query = query.where(EVENTS.c.id > last_id)
            with self.connect() as connection:
                rows = connection.execute(query).all()
            if not rows:
                return
            last_id = rows[-1].id
            yield from (row.data for row in rows)


def read_run(url: str, run: str) -> Iterator[Event]:
    """Yield all events of a run in a database. Raises LogError, also if there is no such run."""
    database = Database(url)
    try:
        runs = database.runs(MAX_LISTED_RUNS)
        is_empty = True
        if runs:
            for event in database.events(run):
                is_empty = False
                yield event
        if is_empty:
            existing_runs = (
                f"it has the runs {', '.join(runs)}" if runs else "it has no events at all"
            )
            raise LogError(
                f"{database.name} has no events of a run {run!r}",
                f"name another one: {existing_runs}",
            )
    finally:
        database.close()


def _parse_url(url: str, for_writing: bool) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise LogError(
            "the database's address can't be read", "see docs/reference/events.md"
        ) from error
    driver = DRIVERS.get(parsed.drivername)
    if driver is None:
        kinds = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"
        raise LogError(f"events are not kept in {parsed.drivername}", f"give {kinds}")
    if driver == "sqlite":
        if parsed.database in (None, "", ":memory:"):
            raise LogError("a database in memory keeps nothing", "give sqlite:///FILE")
        if not for_writing and not Path(str(parsed.database)).is_file():
            raise LogError(f"{parsed.database} is not a file", "check the path")
    return parsed.set(drivername=driver)


def _create_engine(url: URL, for_writing: bool) -> Engine:
    """Return an engine that passes the lines through the JSON column unchanged."""
    engine = create_engine(
        url,
        json_serializer=lambda line: line,
        json_deserializer=lambda line: line,
        pool_pre_ping=True,  # reconnects after a restart of the server
        connect_args={"timeout": 30} if url.get_backend_name() == "sqlite" else {},
    )
    if for_writing:

        def prepare(connection: Any, _record: object) -> None:
            cursor = connection.cursor()
            for statement in WRITE_SETTINGS[url.get_backend_name()]:
                cursor.execute(statement)
            cursor.close()
            connection.commit()

        sqlalchemy_events.listen(engine, "connect", prepare)
    return engine


def _create_table(connection: Connection) -> None:
    try:
        with connection.begin_nested():
            EVENTS.metadata.create_all(connection)
    except DBAPIError:
        # If two processes create the table at the same time, one of them fails, but the table
        # exists.
        if not inspect(connection).has_table(EVENTS.name):
            raise


def _event_count(connection: Connection, run: str) -> int:
    """Return the number of events of the run."""
    query = select(func.max(EVENTS.c.id)).where(EVENTS.c.run == run)
    last_id = connection.scalar(query)
    return 0 if last_id is None else int(last_id) + 1


LOG_NAME = "events.jsonl"
"""File name of the log in the folder of a run."""


def open_log(location: str) -> Iterator[Event]:
    """Yield the events of a log, which are validated as they are read.

    location: FILE, the FOLDER of a run, "sqlite:///FILE#RUN", or
        "postgresql://USER:PASSWORD@HOST/DATABASE#RUN".
    Raises LogError.
    """
    if "://" not in location:
        return read_log(log_file(location))
    url, separator, run = location.rpartition("#")
    if not separator or not run:
        raise LogError(
            "the location names a database but no run in it", "add #RUN, the key of the run"
        )
    return read_run(url, run)


def log_file(location: str) -> Path:
    """Return the path of the log file for a file or for the folder of a run."""
    path = Path(location)
    return path / LOG_NAME if path.is_dir() else path
