"""Inserts requests into the queue's table, those that arrive together in one transaction."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection
from sqlalchemy.schema import Table
from sqlalchemy.sql import Executable

from resolver.storage.database import DatabaseError, ServerDatabase

_ROW_ERRORS = (DatabaseError, ValueError, OverflowError)
"""Errors that the values of a row can cause. The driver of SQLite raises those of Python for text
that is no UTF-8 and for numbers above 64 bits."""


@dataclass
class Insertion:
    """A request that is being inserted into the table.

    values: its columns. is_new: False if the table had it already. done: True once its transaction
    has ended. error: why it could not be stored.
    """

    values: dict[str, Any]
    is_new: bool = False
    done: bool = False
    error: BaseException | None = None


class BatchInserter:
    """Inserts rows that are new by a column with unique values. Thread-safe.

    Rows that arrive at the same time share one statement: the thread that gets the lock inserts
    those of all threads that wait for it. A slow disk then limits how long one row takes, but not
    how many are stored per second. The connection stays open between them and each statement is a
    transaction, which takes a quarter of the processor time of a pooled connection that is checked
    before it is used. What fails there is done again as in `insert_batch`.
    """

    def __init__(self, database: ServerDatabase, table: Table, unique: Column[Any]) -> None:
        self._database, self._unique = database, unique.name
        insertion = database.insert(table).on_conflict_do_nothing(index_elements=[unique.name])
        self._one = insertion.inline().execution_options(preserve_rowcount=True)
        self._many = insertion.returning(unique)
        self._pending: list[Insertion] = []
        self._pending_lock, self._insert_lock = threading.Lock(), threading.Lock()
        self._connection: Connection | None = None

    def insert(self, values: dict[str, Any]) -> bool:
        """Insert a row, durably when this returns. Return False if its unique value is known.

        Raises DatabaseError. After a connection was lost, a row that is new may be said to be
        known.
        """
        insertion = Insertion(values)
        with self._pending_lock:
            self._pending.append(insertion)
        with self._insert_lock:
            if not insertion.done:
                with self._pending_lock:
                    batch, self._pending = self._pending, []
                self.insert_all(batch)
        if insertion.error is not None:
            raise insertion.error
        return insertion.is_new

    def insert_all(self, batch: Sequence[Insertion]) -> None:
        """Insert the batch, and note the result of each insertion in it. One thread at a time."""
        try:
            with self._database.translating_errors():
                self._connection = self._connection or self._database.connect()
                self._insert_at_once(self._connection, batch)
        except _ROW_ERRORS as error:
            is_connected = self._connection is not None
            self._disconnect()
            if is_connected:
                # A value was refused, or the connection was lost: was the database restarted?
                insert_batch(self._database, self._one, batch)
            else:
                _note_error(batch, error)
        except BaseException as error:
            _note_error(batch, error)
            raise

    def close(self) -> None:
        """Close the connection."""
        with self._insert_lock:
            self._disconnect()

    def _insert_at_once(self, connection: Connection, batch: Sequence[Insertion]) -> None:
        rows = [insertion.values for insertion in batch]
        with connection.begin():
            if len(rows) == 1:
                inserted = connection.execute(self._one, rows[0]).rowcount
                new = {rows[0][self._unique]} if inserted else set()
            else:
                new = set(connection.scalars(self._many, rows))
        for insertion in batch:
            value = insertion.values[self._unique]
            insertion.done, insertion.is_new = True, value in new
            new.discard(value)  # the batch may have it twice

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()


def _note_error(batch: Sequence[Insertion], error: BaseException) -> None:
    for insertion in batch:
        insertion.done, insertion.error = True, error


def insert_batch(
    database: ServerDatabase, statement: Executable, batch: Sequence[Insertion]
) -> None:
    """Insert the batch in one transaction, and note the result of each insertion in it.

    A row that the database refuses does not prevent those of other requests from being stored: the
    batch is inserted again, with a savepoint for each row. Errors of rows and of the database are
    noted and not raised.
    """
    error: BaseException | None = None
    try:
        try:
            with database.writing() as connection:
                for insertion in batch:
                    _insert(connection, statement, insertion)
        except _ROW_ERRORS:
            if len(batch) == 1:
                raise
            _insert_separately(database, statement, batch)
    except _ROW_ERRORS as failure:
        error = failure
    except BaseException as failure:
        error = failure
        raise
    finally:
        for insertion in batch:
            insertion.done, insertion.error = True, insertion.error or error


def _insert_separately(
    database: ServerDatabase, statement: Executable, batch: Sequence[Insertion]
) -> None:
    with database.writing() as connection:
        for insertion in batch:
            try:
                with database.savepoint(connection):
                    _insert(connection, statement, insertion)
            except _ROW_ERRORS as failure:
                insertion.error = failure


def _insert(connection: Connection, statement: Executable, insertion: Insertion) -> None:
    insertion.is_new = connection.execute(statement, insertion.values).rowcount == 1
