"""Notes about repositories in the database: shared by machines, and imported from files."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import URL, text

from resolver.config.retries import RetryPolicy
from resolver.errors import LeaseLost
from resolver.runs.wiring.knowledge import render_notes
from resolver.storage.database import (
    DatabaseError,
    ServerDatabase,
    parse_database_url,
)
from resolver.storage.note_table import NoteTable
from tests.parts.postgres import Postgres

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def url(tmp_path: Path) -> URL:
    return parse_database_url(f"sqlite:///{tmp_path}/resolver.db")


@pytest.fixture
def table(url: URL) -> Iterator[NoteTable]:
    table = NoteTable(url, retries=RetryPolicy(seconds=0))
    yield table
    table.close()


def test_machines_share_the_notes_of_their_runs(postgres: Postgres) -> None:
    with postgres.new_database() as url:
        machines = [NoteTable(url) for _ in range(2)]

        def add(number: int) -> None:
            machines[number % 2].add("octo/calc", [f"note {number}"], f"run-{number}", AT)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(add, range(24)))
        lines = machines[0].read("Octo/Calc").text.splitlines()
        assert {line.partition(" (")[0] for line in lines} == {f"- note {n}" for n in range(24)}
        for machine in machines:
            machine.close()


def test_a_process_without_its_lease_stores_no_note(url: URL) -> None:
    def require_valid() -> None:
        raise LeaseLost("the lease has ended")

    table = NoteTable(url, require_valid)
    with pytest.raises(LeaseLost):
        table.add("a/b", ["one"], "run", AT)
    assert table.read("a/b").text == ""
    table.close()


def test_a_database_that_is_gone_costs_the_note_and_not_the_run(
    table: NoteTable, url: URL, caplog: pytest.LogCaptureFixture
) -> None:
    database = ServerDatabase(url)
    with database.writing() as connection:
        connection.execute(text("DROP TABLE resolver_notes"))
    database.close()
    with caplog.at_level(logging.ERROR):
        assert table.read("a/b").text == ""
    assert "the notes about a/b can't be read" in caplog.text
    with pytest.raises(DatabaseError):
        table.add("a/b", ["one"], "run", AT)
    shown = render_notes(["one"], table, "a/b", "run", AT)
    assert "can't use its database" in shown and "sqlite" not in shown
