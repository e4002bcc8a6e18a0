"""The table of events in a server's database, on SQLite or PostgreSQL, and reading it.

A server with PostgreSQL stores each event there besides the run's file
(`resolver.storage.run_archive`). A log is opened by its location: a file, the folder of
a run, or a run in a database.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    cast,
    create_engine,
    inspect,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.types import UserDefinedType

from resolver.errors import LogError
from resolver.events.log import Event, check_lines, read_log


class JsonText(UserDefinedType[str]):
    """Type of a column with JSON that Python reads and writes as text, unchanged.

    The database checks it and can search it by its operators for JSON.
    """

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the type's name in a table definition."""
        return "JSON"

    def column_expression(self, column: Any) -> Any:
        """Let the database return text, which no driver parses."""
        return cast(column, Text)


ARCHIVE_TABLES = MetaData()
"""The tables that hold runs: that of the events, and those of `run_archive`."""

EVENTS = Table(
    "resolver_events",
    ARCHIVE_TABLES,
    Column("run", String(200), primary_key=True),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(100), nullable=False),
    Column("data", JsonText, nullable=False),
)

DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}

PAGE_ROWS = 500
"""Number of rows that are read or written at once."""

MAX_LISTED_RUNS = 10
"""Number of runs that an error message lists."""


class Database:
    """A database with events, for reading. All its errors are raised as LogError."""

    def __init__(self, url: str) -> None:
        parsed = _parse_url(url)
        self.name = parsed.render_as_string(hide_password=True)
        self._engine = create_engine(parsed)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Open a transaction."""
        try:
            with self._engine.begin() as connection:
                yield connection
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
    with closing(Database(url)) as database:
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


def _parse_url(url: str) -> URL:
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
        if not Path(str(parsed.database)).is_file():
            raise LogError(f"{parsed.database} is not a file", "check the path")
    return parsed.set(drivername=driver)


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
