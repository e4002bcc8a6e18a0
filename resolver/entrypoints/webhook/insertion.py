"""Inserts requests into the queue's table, those that arrive together in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.sql import Executable

from resolver.entrypoints.webhook.database import DatabaseError, ServerDatabase

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
