"""The processes that execute the requests of one database, and the lease that each of them holds.

A process registers as an executor under a new id and renews its lease every few seconds. When the
lease has ended, the other processes continue its runs. A process that was suspended, or cut off
from the database, must not write anything from then on: `require_valid` says so by the local clock,
without a request that could block or arrive too late.

The technique and why the clock of the process alone is not enough for it (it is asked
before a write, and the write takes time, hence the margin of one heartbeat):
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
from resolver.storage.database import TABLES, DatabaseError, ServerDatabase

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


class LeasedExecutor:
    """This process as an executor, under an id of its own, with its permission to write.
    Thread-safe.

    Once it may not write, it never may again. In SQLite, whose lock admits no second process, the
    lease never ends and needs no renewal. Methods that use the database raise DatabaseError.

    lease: its duration in seconds.
    """

    def __init__(
        self, database: ServerDatabase, lease: float = LEASE_SECONDS, clock: BootTime = boot_time
    ) -> None:
        self.id = str(uuid.uuid4())
        self._database, self._lease, self._clock = database, lease, clock
        self.expires = database.url.get_backend_name() != "sqlite"
        self.heartbeat_seconds = lease / HEARTBEATS
        self._valid_until = float("inf")
        self._lock, self._has_ended = threading.Lock(), threading.Event()

    @property
    def is_valid(self) -> bool:
        """True while this process may write."""
        with self._lock:
            # A lease that has ended stays lost, even if a late answer would extend it.
            if self._clock() >= self._valid_until:
                self._valid_until = 0.0
            return self._valid_until > 0

    def require_valid(self) -> None:
        """Raise LeaseLost unless this process may write. Never blocks."""
        if not self.is_valid:
            raise LeaseLost(f"the lease of executor {self.id} has ended")

    def register(self) -> None:
        """Store the executor with its first lease."""
        requested_at = self._clock()
        with self._database.writing() as connection:
            row = {"id": self.id, "lease_until": database_time(connection) + self._lease}
            connection.execute(insert(EXECUTORS).values(row))
        self._extend(requested_at)

    def _extend(self, requested_at: float) -> None:
        """Record that the database has confirmed the lease.

        requested_at: this clock's time before the request was sent, so that the lease ends here no
        later than in the database.
        """
        with self._lock:
            if self.expires and self._clock() < self._valid_until:
                self._valid_until = requested_at + self._lease - self.heartbeat_seconds

    def renew(self) -> bool:
        """Renew the lease. Return False if it is lost for good."""
        if not self.expires or not self.is_valid:
            return self.is_valid
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
            self._extend(requested_at)
        else:
            self._end_writes()
        return self.is_valid

    def keep_lease(self, on_lost: Callable[[], None]) -> None:
        """Renew the lease at intervals until it is lost. Call `on_lost` then, as soon as the
        database can be used."""
        wait = self.heartbeat_seconds
        while self.expires and not self._has_ended.wait(wait):
            wait = self.heartbeat_seconds
            try:
                if self.renew():
                    continue
                self.remove()
            except DatabaseError as error:
                logger.warning("the lease of this process can't be renewed: %s", error.what)
                wait = min(wait, MAX_RETRY_SECONDS)
            else:
                if not self._has_ended.is_set():  # a process that ends must not start again
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

    def end(self) -> None:
        """Let this process write nothing more. Its lease is not renewed from now on."""
        self._has_ended.set()
        self._end_writes()

    def _end_writes(self) -> None:
        with self._lock:
            self._valid_until = 0.0

    def remove(self) -> None:
        """Remove the executor, which executes nothing any more."""
        with self._database.writing() as connection:
            connection.execute(delete(EXECUTORS).where(EXECUTORS.c.id == self.id))


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
