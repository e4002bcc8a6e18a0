"""A real PostgreSQL server, on a socket of its own in a temporary folder."""

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import URL, make_url

from tests.parts.missing import skip_without

PASSWORD = "pg-canary-77c1f0a94e"


@dataclass(frozen=True)
class Postgres:
    """A running server. `url` names its one database; who connects needs the password."""

    folder: Path
    tools: Path

    @property
    def url(self) -> str:
        return f"postgresql://resolver:{PASSWORD}@/postgres?host={self.folder}"

    @contextmanager
    def new_database(self) -> Iterator[URL]:
        """Yield the address of an empty database, which is removed at the end."""
        name = f"test_{uuid.uuid4().hex}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        try:
            yield make_url(self.url).set(database=name)
        finally:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def start(self) -> None:
        """Start it again after `stop`."""
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self._control("start", "-o", options, "-l", str(self.folder / "log"))

    def stop(self) -> None:
        """End it as a crash does: connections are cut."""
        self._control("stop", "-m", "immediate")

    def _control(self, *words: str) -> None:
        as_server(self.tools / "pg_ctl", "-w", "-D", self.folder / "data", *words)


def find_tools() -> Path:
    """The folder of pg_ctl, which Debian keeps out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    in_path = shutil.which("pg_ctl")
    if not found and not in_path:
        skip_without("PostgreSQL", "no pg_ctl")
    return found[-1].parent if found else Path(str(in_path)).parent


def as_server(*command: str | Path) -> None:
    """Run a command as a user that PostgreSQL accepts: it refuses root."""
    words = [str(word) for word in command]
    if os.geteuid() == 0:
        words = ["runuser", "-u", "postgres", "--", *words]
    subprocess.run(words, check=True, capture_output=True, cwd="/")


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server with an empty database, gone at the end."""
    tools = find_tools()
    # Short, because the path of a socket may have 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        (folder / "password").write_text(PASSWORD)
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            for path in (folder, folder / "password"):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        as_server(
            tools / "initdb", "-D", folder / "data", "-U", "resolver", "-A", "scram-sha-256",
            "--pwfile", folder / "password", "-E", "UTF8", "--no-sync",
        )  # fmt: skip
        server = Postgres(folder, tools)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests; each takes a run, or a table, of its own."""
    with running_postgres() as server:
        yield server
