"""Keeps the notes of runs about repositories in the server's database, so that the runs of all
machines share them."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy import (
    URL,
    Column,
    Connection,
    String,
    Table,
    Text,
    delete,
    select,
    update,
)

from resolver.config.retries import RetryPolicy
from resolver.memory.skills.recaller import NoteReader
from resolver.storage.database import (
    DATABASE_RETRIES,
    DatabaseError,
    ServerDatabase,
    call_persistently,
    open_database,
    upsert,
)
from resolver.storage.notes import (
    StoredNote,
    dump_stored_notes,
    merge_notes,
    parse_stored_notes,
    shown_notes,
)
from resolver.storage.schema import TABLES

logger = logging.getLogger("resolver.storage")

NOTES = Table(
    "resolver_notes",
    TABLES,
    Column("repository", String(300), primary_key=True),
    Column("notes", Text, nullable=False),
)
"""repository: OWNER/NAME in lower case. notes: as written by `dump_stored_notes`."""


class NoteTable:
    """The table of notes. Implements `NoteStore`. Thread-safe.

    database: open, or its URL from `parse_database_url`. require_valid: raises LeaseLost
    once this process may not write any more. retries: how long notes are stored again while the
    database can't be used.
    """

    def __init__(
        self,
        database: URL | ServerDatabase,
        require_valid: Callable[[], None] = lambda: None,
        retries: RetryPolicy = DATABASE_RETRIES,
    ) -> None:
        self._database = open_database(database)
        self._require_valid, self._retries = require_valid, retries

    def read(self, repository: str) -> NoteReader:
        """Implement `NoteStore.read`. Errors of the database are logged."""
        try:
            with self._database.reading() as connection:
                stored = _stored(connection, repository)
        except DatabaseError as error:
            logger.error("the notes about %s can't be read: %s", repository, error.what)
            return NoteReader()
        return shown_notes(stored)

    def add(self, repository: str, notes: Sequence[str], run: str, at: datetime) -> tuple[str, ...]:
        """Implement `NoteStore.add`."""
        added = [StoredNote(note=note, run=run, at=at) for note in notes]

        def attempt() -> tuple[str, ...]:
            self._require_valid()
            return self._merge(repository, added)

        return call_persistently(attempt, self._retries, f"the notes of run {run}")

    def remove(self, repository: str) -> int:
        """Remove the notes about a repository, and return their number."""
        with self._database.writing() as connection:
            number = len(_stored(connection, repository))
            connection.execute(delete(NOTES).where(NOTES.c.repository == repository.lower()))
        return number

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def _merge(self, repository: str, notes: Sequence[StoredNote]) -> tuple[str, ...]:
        """Add notes to those of the repository, and return the texts of those that are new."""
        key = repository.lower()
        with self._database.writing() as connection:
            upsert(connection, NOTES, {"repository": key, "notes": "[]"}, {})
            stored = _stored(connection, repository)
            merged, new = merge_notes(stored, notes)
            change = update(NOTES).where(NOTES.c.repository == key)
            connection.execute(change.values(notes=dump_stored_notes(merged)))
        return new


def _stored(connection: Connection, repository: str) -> list[StoredNote]:
    """Return the notes about a repository. In a transaction that writes, their row is locked."""
    query = select(NOTES.c.notes).where(NOTES.c.repository == repository.lower())
    is_reading = connection.get_execution_options().get("resolver_reads", False)
    text = connection.scalar(query if is_reading else query.with_for_update())
    return parse_stored_notes(text or "")
