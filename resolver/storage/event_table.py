"""The table of events in a server's database, on SQLite or PostgreSQL, and reading it.

A server with PostgreSQL stores each event there besides the run's file
(`resolver.storage.run_archive`). A log is opened by its location: a file, the folder of
a run, or a run in a database.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Integer,
    String,
    Table,
    Text,
    cast,
    create_engine,
    inspect,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.types import UserDefinedType

from resolver.config.documentation import DOCS
from resolver.errors import LogError, UsageError
from resolver.events.log import Event, check_lines, read_log
from resolver.storage.database import first_line
from resolver.storage.schema import TABLES


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


EVENTS = Table(
    "resolver_events",
    TABLES,
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


Transaction = Callable[[], AbstractContextManager[Connection]]
"""Opens a transaction for a block."""


def read_lines(
    transaction: Transaction, run: str, start: int = 0, end: int | None = None
) -> Iterator[str]:
    """Yield the lines of the events of a run from number `start` to before `end`.

    A transaction is open for `PAGE_ROWS` of them, and not while the caller has them.
    """
    table = EVENTS.c
    query = select(table.id, table.data).where(table.run == run)
    if end is not None:
        query = query.where(table.id < end)
    has_more = True
    while has_more:
        page = query.where(table.id >= start).order_by(table.id).limit(PAGE_ROWS)
        with transaction() as connection:
            rows = connection.execute(page).all()
        yield from (row.data for row in rows)
        has_more = len(rows) == PAGE_ROWS
        start = rows[-1].id + 1 if rows else start


def read_run(url: str, run: str) -> Iterator[Event]:
    """Yield all events of a run in a database.

    Raises UsageError if there is no such run, and LogError if the database can't be read.
    """
    parsed = _parse_url(url)
    name, engine = parsed.render_as_string(hide_password=True), create_engine(parsed)

    @contextmanager
    def transaction() -> Iterator[Connection]:
        try:
            with engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise LogError(
                f"{name}: {first_line(error)}",
                "check that the database is there and that it can be reached",
            ) from error

    try:
        with transaction() as connection:
            runs = _list_runs(connection)
        events = check_lines(f"{name}#{run}", "row", read_lines(transaction, run))
        first = next(events, None) if runs else None
        if first is None:
            existing_runs = (
                f"it has the runs {', '.join(runs)}" if runs else "it has no events at all"
            )
            raise UsageError(
                f"{name} has no events of a run {run!r}", f"name another one: {existing_runs}"
            )
        yield first
        yield from events
    finally:
        engine.dispose()


def _list_runs(connection: Connection) -> list[str]:
    """Return the keys of the runs, `MAX_LISTED_RUNS` at most."""
    if not inspect(connection).has_table(EVENTS.name):
        return []
    return list(connection.scalars(select(EVENTS.c.run).distinct().limit(MAX_LISTED_RUNS)))


def _parse_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise UsageError(
            "the database's address can't be read", f"see {DOCS}/reference/events.md"
        ) from error
    driver = DRIVERS.get(parsed.drivername)
    if driver is None:
        kinds = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"
        raise UsageError(f"events are not kept in {parsed.drivername}", f"give {kinds}")
    if driver == "sqlite":
        if parsed.database in (None, "", ":memory:"):
            raise UsageError("a database in memory keeps nothing", "give sqlite:///FILE")
        if not Path(str(parsed.database)).is_file():
            raise UsageError(f"{parsed.database} is not a file", "check the path")
    return parsed.set(drivername=driver)


LOG_NAME = "events.jsonl"
"""File name of the log in the folder of a run."""


def open_log(location: str) -> Iterator[Event]:
    """Yield the events of a log, which are validated as they are read.

    location: FILE, the FOLDER of a run, "sqlite:///FILE#RUN", or
        "postgresql://USER:PASSWORD@HOST/DATABASE#RUN".
    Raises UsageError if there is no such run, and LogError if its log can't be read.
    """
    if "://" not in location:
        path = log_file(location)
        if not path.exists():
            raise UsageError(f"{location} contains no run", "give the output folder of a run")
        return read_log(path)
    url, separator, run = location.rpartition("#")
    if not separator or not run:
        raise UsageError(
            "the location names a database but no run in it", "add #RUN, the key of the run"
        )
    return read_run(url, run)


def log_file(location: str) -> Path:
    """Return the path of the log file for a file or for the folder of a run."""
    path = Path(location)
    return path / LOG_NAME if path.is_dir() else path
