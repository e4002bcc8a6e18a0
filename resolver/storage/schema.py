"""Creates the tables of the server's database, and migrates those of an earlier release.

alembic applies the revisions in `migrations/versions/`. A new database gets all tables at once from
an SQL script, and one query shows that a database is current, because importing alembic takes
longer than anything else at the start of a server.
"""

import io
import logging
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from sqlalchemy import Connection, inspect, text

from resolver.errors import UsageError

logger = logging.getLogger("resolver.storage")

VERSION_TABLE = "resolver_alembic_version"
"""The table in which alembic keeps the revision. Its default name might be another program's."""

FOLDER = Path(__file__).parent / "migrations"

DIALECTS = ("sqlite", "postgresql")

_MIGRATION_LOCK = 7_365_736_764_117_106

CLAIM_LOCK = _MIGRATION_LOCK + 1
"""Keys of advisory locks, for `lock_others_out`. Any that other programs don't use will do."""

_FIRST_TABLES = ("resolver_requests", "resolver_spending")
"""Tables at least one of which exists in a database that predates the first migration."""

_alembic_lock = threading.Lock()
"""Held while alembic is used, because it keeps the current migration in global variables."""


class SchemaTooNew(UsageError):
    """A newer release of Resolver has migrated the database."""


@cache
def known_revisions(folder: Path = FOLDER) -> tuple[str, ...]:
    """Return the revisions of this release, the oldest first, from the names of their files."""
    return tuple(sorted(path.name[1:5] for path in (folder / "versions").glob("v[0-9]*.py")))


def lock_others_out(connection: Connection, key: int) -> None:
    """Wait until no other transaction has the lock of this key, and keep it until this one ends.

    PostgreSQL has advisory locks for that, which keep nobody else from the tables, see
    https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS. In SQLite a
    transaction that may write is the only one anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})


def stored_revision(connection: Connection) -> str:
    """Return the revision of the database, "" if it has none."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return ""
    return str(connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) or "")  # noqa: S608


def is_schema_current(connection: Connection, folder: Path = FOLDER) -> bool:
    """Return True if the database has the newest revision that is known. Raises SchemaTooNew."""
    revision = stored_revision(connection)
    known = known_revisions(folder)
    if revision and revision not in known:
        raise SchemaTooNew(
            f"the database has revision {revision}, and this release of Resolver knows {known[0]} "
            f"to {known[-1]}: a newer release has migrated it",
            "start the newer release, or restore a backup from before its first start",
        )
    return revision == known[-1]


def upgrade_schema(connection: Connection, folder: Path = FOLDER) -> None:
    """Create the tables or migrate them to the newest revision, as part of the transaction.

    connection: in a transaction that may write. One process at a time does this: in PostgreSQL the
    others wait for an advisory lock, in SQLite they wait for the write lock of the transaction.
    Raises SchemaTooNew.
    """
    lock_others_out(connection, _MIGRATION_LOCK)
    if is_schema_current(connection, folder):
        return  # another process has migrated it in the meantime
    inspector = inspect(connection)
    if any(map(inspector.has_table, (VERSION_TABLE, *_FIRST_TABLES))):
        _run_revisions(connection, folder)
        return
    for statement in _statements(connection.dialect.name):
        connection.exec_driver_sql(statement)


def render_schema(dialect: str) -> str:
    """Return the SQL script of all revisions, which creates the tables of a new database."""
    output = io.StringIO()
    _run_alembic(FOLDER, {"dialect": dialect}, output)
    lines = (line.rstrip() for line in output.getvalue().strip().splitlines())
    return "\n".join(lines) + "\n"


def schema_file(dialect: str) -> Path:
    """Return the path of the script that `render_schema` makes."""
    return FOLDER / f"schema_{dialect}.sql"


def _statements(dialect: str) -> Iterator[str]:
    lines = schema_file(dialect).read_text().splitlines()
    script = "\n".join(line for line in lines if not line.startswith("--"))
    return (statement.strip() for statement in script.split(";") if statement.strip())


def _run_revisions(connection: Connection, folder: Path) -> None:
    before = stored_revision(connection)
    _run_alembic(folder, {"connection": connection})
    logger.info(
        "the database was migrated from revision %s to %s",
        before or "none",
        known_revisions(folder)[-1],
    )


def _run_alembic(folder: Path, attributes: Mapping[str, Any], output: TextIO | None = None) -> None:
    """Apply the revisions. output: gets them as an SQL script, and no database is used.

    attributes: for `migrations/env.py`.
    """
    from alembic import command
    from alembic.config import Config

    config = Config(output_buffer=output)
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes.update(attributes)
    with _alembic_lock:
        command.upgrade(config, "head", sql=output is not None)
