"""The tables of the server, created in an empty database."""

import importlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import URL, Table, inspect, select

from resolver import storage
from resolver.entrypoints import webhook
from resolver.storage.database import ServerDatabase, parse_database_url
from tests.parts.postgres import Postgres


@pytest.fixture(params=("sqlite", "postgresql"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    """An empty database."""
    if request.param == "sqlite":
        yield parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
        return
    server: Postgres = request.getfixturevalue("postgres")
    with server.new_database() as url:
        yield url


def tables_of_modules() -> dict[str, Table]:
    """Every table that a module of the server defines, by its name."""
    found = {}
    for package in (storage, webhook):
        for path in Path(package.__path__[0]).glob("*.py"):
            if "Table(" in path.read_text():
                values = vars(importlib.import_module(f"{package.__name__}.{path.stem}")).values()
                found |= {value.name: value for value in values if isinstance(value, Table)}
    return found


def test_a_new_database_has_the_tables_that_the_modules_define(url: URL) -> None:
    defined = tables_of_modules()
    database = ServerDatabase(url)
    with database.reading() as connection:
        assert defined.keys() <= set(inspect(connection).get_table_names())
        for table in defined.values():
            assert connection.execute(select(table)).all() == []
    database.close()


def test_processes_that_start_together_create_the_tables_once(url: URL) -> None:
    together = threading.Barrier(3)

    def start(_: int) -> None:
        together.wait(60)
        ServerDatabase(url).close()

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(start, range(3)))  # raises what one of them has raised
