"""The tables of the server, created in an empty database."""

import threading
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import URL

from resolver.storage.database import ServerDatabase


def test_processes_that_start_together_create_the_tables_once(database_url: URL) -> None:
    together = threading.Barrier(3)

    def start(_: int) -> None:
        together.wait(60)
        ServerDatabase(database_url).close()

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(start, range(3)))  # raises what one of them has raised
