"""The tables of the server's database, and how a process creates those that are missing.

A module that uses a table defines it in `TABLES`, so whoever uses one finds it created.
"""

from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Integer, MetaData, inspect, select, text

TABLES = MetaData()
"""All tables of the server."""

_CREATION_LOCK = 7_365_736_764_117_106
"""Key of an advisory lock, for `lock_others_out`. Any that other programs don't use will do."""


def position_column() -> Column[Any]:
    """Return the primary key of a table whose rows are numbered in the order of their insertion.

    SQLite numbers only a primary key of its type INTEGER.
    """
    number = BigInteger().with_variant(Integer(), "sqlite")
    return Column("position", number, primary_key=True, autoincrement=True)


def lock_others_out(connection: Connection, key: int) -> None:
    """Wait until no other transaction has the lock of this key, and keep it until this one ends.

    PostgreSQL has advisory locks for that, which keep nobody else from the tables, see
    https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS. In SQLite a
    transaction that may write is the only one anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})


def has_all_tables(connection: Connection) -> bool:
    """Return True if the database has all tables that are defined in this process.

    Something of each is read, so that a damaged file is found at the start.
    """
    if not TABLES.tables.keys() <= set(inspect(connection).get_table_names()):
        return False
    for table in TABLES.tables.values():
        connection.execute(select(table).limit(1)).first()
    return True


def create_tables(connection: Connection) -> None:
    """Create the missing tables, as part of a transaction that may write.

    Processes that start together do this one after the other.
    """
    lock_others_out(connection, _CREATION_LOCK)
    TABLES.create_all(connection)
