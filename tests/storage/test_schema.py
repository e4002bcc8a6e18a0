"""The tables of the server, created in an empty database."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import URL

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


def test_processes_that_start_together_create_the_tables_once(url: URL) -> None:
    together = threading.Barrier(3)

    def start(_: int) -> None:
        together.wait(60)
        ServerDatabase(url).close()

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(start, range(3)))  # raises what one of them has raised
