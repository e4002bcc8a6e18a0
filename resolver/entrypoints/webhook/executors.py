"""The processes that execute the requests of one database, and the lease that each of them holds.

A process registers as an executor under a new id and renews its lease every few seconds. When the
lease has ended, the other processes continue its runs. A process that was suspended, or cut off
from the database, must not write anything from then on: its `Fence` says so by the local clock,
without a request that could block or arrive too late.

The technique and why the clock of the process alone is not enough for it (the fence is checked
before a write, and the write takes time, hence `SAFETY_SECONDS`):
https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable

from sqlalchemy import (
    Column,
    Connection,
    Float,
    String,
    Table,
    delete,
    insert,
    select,
    text,
    update,
)

from resolver.errors import LeaseLost
from resolver.storage.database import DatabaseError, ServerDatabase
from resolver.storage.schema import TABLES

logger = logging.getLogger("resolver.entrypoints.webhook")

LEASE_SECONDS = 30.0
"""Duration of a lease. A dead executor is noticed after this time at the latest."""

HEARTBEATS = 6
"""Number of renewals in the time of a lease. Its holder stops to write one of these intervals
before its end, for writes that are under way then."""

MAX_RETRY_SECONDS = 1.0
"""Maximum interval between two renewals while the database can't be used."""

EXECUTORS = Table(
    "resolver_executors",
    TABLES,
    Column("id", String(36), primary_key=True),
    Column("lease_until", Float, nullable=False),
)
"""One row for each process that executes requests. lease_until: seconds since 1970 by the clock of
the database."""

BootTime = Callable[[], float]
"""Returns seconds of a clock that also advances while the machine is suspended."""


def boot_time() -> float:
    """Return the seconds since the machine was started, including the time that it was suspended.

    Source: https://man7.org/linux/man-pages/man2/clock_gettime.2.html (CLOCK_BOOTTIME)
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Fence:
    """Says if this process may still write for an executor. Thread-safe.

    A fence that has closed never opens again.

    executor: its id.
    expires: True if the lease ends unless `extend` is called in time.
    """

    def __init__(self, executor: str, expires: bool = True, clock: BootTime = boot_time) -> None:
        self.executor, self._clock = executor, clock
        self._lock = threading.Lock()
        self._is_closed = False
        self._valid_until = clock() if expires else float("inf")

    def extend(self, requested_at: float, seconds: float) -> None:
        """Record that the database has confirmed a lease of `seconds`.

        requested_at: this clock's time before the request was sent, so that the lease ends here no
        later than in the database.
        """
        until = requested_at + seconds * (1 - 1 / HEARTBEATS)
        with self._lock:
            if not self._is_closed:
                self._valid_until = max(self._valid_until, until)

    def close(self) -> None:
        """End the permission to write at once."""
        with self._lock:
            self._is_closed = True

    @property
    def is_valid(self) -> bool:
        """True while this process may write."""
        with self._lock:
            # A lease that has ended stays lost, even if a late answer would extend it.
            self._is_closed = self._is_closed or self._clock() >= self._valid_until
            return not self._is_closed

    def require_valid(self) -> None:
        """Raise LeaseLost unless this process may write. Never blocks."""
        if not self.is_valid:
            raise LeaseLost(f"the lease of executor {self.executor} has ended")


class RegisteredExecutor:
    """This process as an executor, under an id of its own. Thread-safe.

    In SQLite, whose lock admits no second process, the lease never ends and needs no renewal.
    Methods raise DatabaseError. lease: its duration in seconds.
    """

    def __init__(
        self, database: ServerDatabase, lease: float = LEASE_SECONDS, clock: BootTime = boot_time
    ) -> None:
        self.id = str(uuid.uuid4())
        self._database, self._lease, self._clock = database, lease, clock
        self.expires = database.url.get_backend_name() != "sqlite"
        self.fence = Fence(self.id, self.expires, clock)
        self._is_stopping = threading.Event()

    @property
    def heartbeat_seconds(self) -> float:
        """The interval between two renewals."""
        return self._lease / HEARTBEATS

    def register(self) -> None:
        """Store the executor with its first lease."""
        requested_at = self._clock()
        with self._database.writing() as connection:
            lease_until = database_time(connection) + self._lease
            row = {"id": self.id, "lease_until": lease_until}
            connection.execute(insert(EXECUTORS).values(row))
        self.fence.extend(requested_at, self._lease)

    def renew(self) -> bool:
        """Renew the lease. Return False if it is lost for good."""
        if not self.expires or not self.fence.is_valid:
            return self.fence.is_valid
        requested_at = self._clock()
        with self._database.writing() as connection:
            now = database_time(connection)
            renewal = (
                update(EXECUTORS)
                .where(EXECUTORS.c.id == self.id, EXECUTORS.c.lease_until > now)
                .values(lease_until=now + self._lease)
            )
            is_renewed = connection.execute(renewal).rowcount == 1
        if is_renewed:
            self.fence.extend(requested_at, self._lease)
        else:
            self.fence.close()
        return self.fence.is_valid

    def keep_lease(self, on_lost: Callable[[], None]) -> None:
        """Renew the lease at intervals until it is lost, and call `on_lost` then."""
        wait = self.heartbeat_seconds
        while self.expires and not self._is_stopping.wait(wait):
            wait = self.heartbeat_seconds
            try:
                self.renew()
            except DatabaseError as error:
                logger.warning("the lease of this process can't be renewed: %s", error.what)
                wait = min(wait, MAX_RETRY_SECONDS)
            if not self.fence.is_valid and not self._is_stopping.is_set():
                on_lost()
                return

    def find_dead(self, executors: set[str]) -> set[str]:
        """Return those of the executors that have no lease. In SQLite that is every other one,
        because its lock admits no second process."""
        others = executors - {self.id}
        if not others or not self.expires:
            return others
        with self._database.writing() as connection:
            now = database_time(connection)
            # A lease can't be renewed once its row is removed.
            connection.execute(delete(EXECUTORS).where(EXECUTORS.c.lease_until <= now))
            return others - set(connection.scalars(select(EXECUTORS.c.id)))

    def end_writes(self) -> None:
        """Let this process write nothing more. Its lease is not renewed from now on."""
        self._is_stopping.set()
        self.fence.close()

    def remove(self) -> None:
        """Remove the executor, which executes nothing any more."""
        with self._database.writing() as connection:
            connection.execute(delete(EXECUTORS).where(EXECUTORS.c.id == self.id))

    def wait_for_database(self) -> None:
        """Wait until the database can be used."""
        while True:
            try:
                self._database.check(EXECUTORS)
            except DatabaseError:
                time.sleep(MAX_RETRY_SECONDS)
            else:
                return


def database_time(connection: Connection) -> float:
    """Return the time of the database's clock in seconds since 1970.

    It is the one clock that all executors share. In SQLite it is the clock of this machine.
    """
    if connection.dialect.name != "postgresql":
        return time.time()
    # unlike now(), which is the time at which the transaction began
    return float(
        connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one()
    )
