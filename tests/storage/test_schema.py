"""The tables of the server, created in an empty database."""

import threading
from concurrent.futures import ThreadPoolExecutor

from resolver.storage.database import ServerDatabase
from tests.parts.postgres import Postgres


def test_processes_that_start_together_create_the_tables_once(postgres: Postgres) -> None:
    together = threading.Barrier(3)

    def start(_: int) -> None:
        together.wait(60)
        ServerDatabase(url).close()

    with postgres.new_database() as url, ThreadPoolExecutor(3) as threads:
        list(threads.map(start, range(3)))  # raises what one of them has raised
