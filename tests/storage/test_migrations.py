"""The tables of the server: created, and migrated from those of each earlier release."""

import importlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import URL, MetaData, Table, inspect, text

from resolver import storage
from resolver.entrypoints import webhook
from resolver.entrypoints.webhook.request_queue import RequestKind
from resolver.entrypoints.webhook.sql_request_queue import SqlRequestQueue
from resolver.errors import UsageError
from resolver.storage.database import (
    DatabaseError,
    ServerDatabase,
    parse_database_url,
)
from resolver.storage.schema import (
    DIALECTS,
    FOLDER,
    VERSION_TABLE,
    SchemaTooNew,
    known_revisions,
    render_schema,
    schema_file,
    stored_revision,
    upgrade_schema,
)
from tests.parts.postgres import Postgres
from tests.webhook.test_request_queue import NOW, run

SPENDING = (
    """CREATE TABLE resolver_spending (
        run VARCHAR(200) NOT NULL PRIMARY KEY, repository VARCHAR(300) NOT NULL,
        day VARCHAR(10) NOT NULL, cost FLOAT NOT NULL, unpriced INTEGER NOT NULL,
        reserved FLOAT NOT NULL, until FLOAT NOT NULL)""",
    "CREATE INDEX ix_resolver_spending_repository ON resolver_spending (repository)",
    "CREATE INDEX ix_resolver_spending_day ON resolver_spending (day)",
    "INSERT INTO resolver_spending VALUES ('run-1', 'octo/calc', '2026-11-21', 1.5, 0, 0, 0)",
)
REQUESTS = (
    """CREATE TABLE resolver_requests (
        position {position}, id VARCHAR(300) NOT NULL, kind VARCHAR(10) NOT NULL,
        state VARCHAR(10) NOT NULL, repository TEXT NOT NULL, number BIGINT, subject BIGINT,
        "key" TEXT NOT NULL, "trigger" TEXT NOT NULL, login TEXT NOT NULL,
        not_before FLOAT NOT NULL, announced BOOLEAN NOT NULL, claim INTEGER NOT NULL,
        begun BOOLEAN NOT NULL, attempts INTEGER NOT NULL, progress INTEGER NOT NULL,
        crashes INTEGER NOT NULL, outages INTEGER NOT NULL, outage_began FLOAT NOT NULL,
        UNIQUE (id))""",
    "CREATE INDEX resolver_requests_next ON resolver_requests (state, kind, repository, position)",
    "CREATE INDEX resolver_requests_oldest ON resolver_requests (state, kind, position)",
    "CREATE INDEX resolver_requests_due ON resolver_requests (state, not_before)",
    """CREATE INDEX resolver_requests_announced
        ON resolver_requests (state, kind, announced, position)""",
    "CREATE INDEX resolver_requests_thread ON resolver_requests (repository, subject, state)",
    """INSERT INTO resolver_requests (id, kind, state, repository, number, "key", "trigger", login,
        not_before, announced, claim, begun, attempts, progress, crashes, outages, outage_began)
        VALUES ('first', 'run', 'waiting', 'octo/calc', 7, 'k', {trigger}, '',
        0, {false}, 0, {false}, 0, 0, 0, 0, 0)""",
)
LOOKS = (
    "CREATE TABLE resolver_looks (webhook VARCHAR(400) NOT NULL PRIMARY KEY, until FLOAT NOT NULL)",
)
OUTCOMES = (
    """CREATE TABLE resolver_outcomes (
        repository VARCHAR(300) NOT NULL PRIMARY KEY,
        due FLOAT NOT NULL, outcomes TEXT NOT NULL)""",
    "CREATE INDEX ix_resolver_outcomes_due ON resolver_outcomes (due)",
)
RELEASES = {
    "costs": (SPENDING,),
    "queue": (SPENDING, REQUESTS),
    "missed deliveries": (SPENDING, REQUESTS, LOOKS),
    "outcomes": (SPENDING, REQUESTS, LOOKS, OUTCOMES),
}
"""The tables of each release before the first migration, by what it had added."""


@pytest.fixture(params=DIALECTS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    """An empty database."""
    if request.param == "sqlite":
        yield parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
        return
    server: Postgres = request.getfixturevalue("postgres")
    with server.new_database() as url:
        yield url


def make_tables(url: URL, release: str) -> None:
    """Create the tables of an earlier release, each with a row if the release had data in it."""
    is_sqlite = url.get_backend_name() == "sqlite"
    number = "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT"
    words = {
        "position": number if is_sqlite else "BIGSERIAL PRIMARY KEY",
        "false": "0" if is_sqlite else "false",
        "trigger": "'" + run(7).trigger.model_dump_json().replace("'", "''") + "'",
    }
    database = ServerDatabase(url)
    with database.writing() as connection:
        for table in all_tables():
            connection.execute(text(f"DROP TABLE {table.name}"))
        connection.execute(text(f"DROP TABLE {VERSION_TABLE}"))
        for statements in RELEASES[release]:
            for statement in statements:
                connection.exec_driver_sql(statement.format(**words))
    database.close()


def all_tables() -> list[Table]:
    """Every table that a module of the server defines."""
    found = {}
    for package in (storage, webhook):
        for path in Path(package.__path__[0]).glob("*.py"):
            if "Table(" in path.read_text():
                values = vars(importlib.import_module(f"{package.__name__}.{path.stem}")).values()
                found |= {value.name: value for value in values if isinstance(value, Table)}
    return list(found.values())


def differences(database: ServerDatabase) -> list[object]:
    """Return alembic's changes from the database to the tables of the modules."""
    metadata = MetaData()
    for table in all_tables():
        table.to_metadata(metadata)
    with database.reading() as connection:
        options = {"version_table": VERSION_TABLE}
        return list(
            compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
        )


def test_a_new_database_has_the_tables_that_the_modules_define(url: URL) -> None:
    database = ServerDatabase(url)
    assert differences(database) == []
    with database.reading() as connection:
        assert stored_revision(connection) == known_revisions()[-1]
    database.close()


@pytest.mark.parametrize("release", RELEASES)
def test_a_database_of_an_earlier_release_is_migrated_with_its_rows(url: URL, release: str) -> None:
    make_tables(url, release)
    queue, database = SqlRequestQueue(url), ServerDatabase(url)
    assert differences(database) == []
    with database.reading() as connection:
        assert stored_revision(connection) == known_revisions()[-1]
        assert connection.scalar(text("SELECT sum(cost) FROM resolver_spending")) == 1.5
    queue.add(run(8, "octo/other"))
    claimed = [request.trigger.number for request in queue.claim(RequestKind.RUN, 4, NOW)]
    assert claimed == ([8] if release == "costs" else [7, 8])
    for store in (queue, database):
        store.close()


def test_processes_that_start_together_migrate_once(url: URL) -> None:
    make_tables(url, "queue")
    together = threading.Barrier(3)

    def start(_: int) -> None:
        together.wait(60)
        ServerDatabase(url).close()

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(start, range(3)))  # raises what one of them has raised
    database = ServerDatabase(url)
    assert differences(database) == []
    database.close()


def test_a_database_of_a_newer_release_is_refused(url: URL) -> None:
    database = ServerDatabase(url)
    with database.writing() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    database.close()
    with pytest.raises(SchemaTooNew, match="revision 9999") as caught:
        ServerDatabase(url)
    assert isinstance(caught.value, UsageError)
    assert "newer release" in caught.value.next_step


def test_a_migration_that_fails_changes_nothing(url: URL, tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    shutil.copytree(FOLDER, folder)
    newest = known_revisions()[-1]
    (folder / "versions" / "v9000_fails.py").write_text(
        "from alembic import op\n"
        f"revision, down_revision = '9000', {newest!r}\n"
        "def upgrade():\n"
        "    op.execute('CREATE TABLE resolver_half (id INTEGER)')\n"
        "    op.execute('INSERT INTO resolver_missing VALUES (1)')\n"
    )
    database = ServerDatabase(url)
    with pytest.raises(DatabaseError, match="resolver_missing"), database.writing() as connection:
        upgrade_schema(connection, folder)
    with database.reading() as connection:
        assert stored_revision(connection) == newest
        assert not inspect(connection).has_table("resolver_half")
    database.close()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_scripts_for_new_databases_are_written_from_the_revisions(dialect: str) -> None:
    assert schema_file(dialect).read_text() == render_schema(dialect), "run `make docs`"


def test_a_new_and_a_current_database_need_no_alembic(tmp_path: Path) -> None:
    """Importing it would take longer than all other work on the database at the start."""
    code = f"""
import sys
from resolver.storage.database import ServerDatabase, parse_database_url
for _ in range(2):
    ServerDatabase(parse_database_url("sqlite:///{tmp_path}/new.db"))
assert "alembic" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
