"""The processes that execute the requests of one database, and the lease that each of them holds.

A process registers as an executor under a new id and renews its lease every few seconds. When the
lease has ended, any other process may revoke its claims and continue its runs. A process that was
suspended, or cut off from the database, must not write anything from then on: its `Fence` says so
by the local clock, without a request that could block or arrive too late.

The technique and why the clock of the process alone is not enough for it (the fence is checked
before a write, and the write takes time, hence `SAFETY_SECONDS`):
https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
"""

import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from sqlalchemy import (
    URL,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Float,
    Integer,
    String,
    Table,
    and_,
    delete,
    insert,
    not_,
    or_,
    select,
    text,
    true,
    update,
)

from resolver import __version__
from resolver.errors import LeaseLost
from resolver.storage.database import DatabaseError, ServerDatabase
from resolver.storage.schema import TABLES

logger = logging.getLogger("resolver.entrypoints.webhook")

LEASE_SECONDS = 30.0
"""Duration of a lease. A dead executor is noticed after this time at the latest."""

HEARTBEAT_SECONDS = 5.0
"""Interval between two renewals of the lease."""

SAFETY_SECONDS = 5.0
"""Time before the end of the lease at which its holder stops to write, for writes that are under
way then."""

MAX_RETRY_SECONDS = 1.0
"""Maximum interval between two renewals while the database can't be used."""

EXECUTORS = Table(
    "resolver_executors",
    TABLES,
    Column("id", String(36), primary_key=True),
    Column("kind", String(10), nullable=False),
    Column("host", String(255), nullable=False),
    Column("version", String(50), nullable=False),
    Column("slots", Integer, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("lease_until", Float, nullable=False),
    Column("draining", Boolean, nullable=False, default=False),
)
"""One row for each process that may hold claims; it is removed when its claims are released or
revoked. slots: maximum number of runs at a time. draining: the process was asked to end. Times are
seconds since 1970 by the clock of the database."""


class ExecutorKind(StrEnum):
    """SERVE accepts deliveries and shows pages, and may execute requests. WORKER only executes."""

    SERVE = "serve"
    WORKER = "worker"


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
    safety: see `SAFETY_SECONDS`.
    """

    def __init__(
        self,
        executor: str,
        expires: bool = True,
        safety: float = SAFETY_SECONDS,
        clock: BootTime = boot_time,
    ) -> None:
        self.executor = executor
        self._safety, self._clock = safety, clock
        self._lock = threading.Lock()
        self._is_closed = False
        self._valid_until = clock() if expires else float("inf")

    def extend(self, requested_at: float, seconds: float) -> None:
        """Record that the database has confirmed a lease of `seconds`.

        requested_at: this clock's time before the request was sent, so that the lease ends here no
        later than in the database.
        """
        with self._lock:
            if not self._is_closed:
                self._valid_until = max(self._valid_until, requested_at + seconds - self._safety)

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


@dataclass(frozen=True)
class LeaseTimes:
    """The durations of a lease in seconds. See the constants of this module."""

    lease: float = LEASE_SECONDS
    heartbeat: float = HEARTBEAT_SECONDS
    safety: float = SAFETY_SECONDS

    @classmethod
    def lasting(cls, lease: float) -> "LeaseTimes":
        """Return the times of a lease of `lease` seconds, in the usual proportions."""
        part = lease / LEASE_SECONDS
        return cls(lease, HEARTBEAT_SECONDS * part, SAFETY_SECONDS * part)


DEFAULT_TIMES = LeaseTimes()


class RegisteredExecutor:
    """This process as an executor, under an id of its own. Thread-safe.

    In SQLite, whose lock admits no second process, the lease never ends and needs no renewal.
    Raises UsageError if the database can't be used. Methods raise DatabaseError.

    url: as returned by `database.parse_database_url`. slots: maximum number of runs at a time.
    expires: True if the lease ends unless it is renewed.
    """

    def __init__(
        self,
        url: URL,
        kind: ExecutorKind = ExecutorKind.SERVE,
        slots: int = 0,
        times: LeaseTimes = DEFAULT_TIMES,
        clock: BootTime = boot_time,
    ) -> None:
        self.id = str(uuid.uuid4())
        self._database = ServerDatabase(url)
        self._kind, self._slots, self._times, self._clock = kind, slots, times, clock
        self.expires = url.get_backend_name() != "sqlite"
        self.fence = Fence(self.id, self.expires, times.safety, clock)
        self._is_stopping = threading.Event()

    @property
    def lease_seconds(self) -> float:
        """The duration of a lease."""
        return self._times.lease

    @property
    def heartbeat_seconds(self) -> float:
        """The interval between two renewals."""
        return self._times.heartbeat

    def register(self, replaced: str = "") -> None:
        """Store the executor with its first lease. replaced: an executor without claims that is
        known to be dead, and whose row is removed."""
        requested_at = self._clock()
        with self._database.writing() as connection:
            remove_executor(connection, replaced)
            now = database_time(connection)
            connection.execute(
                insert(EXECUTORS).values(
                    id=self.id,
                    kind=self._kind.value,
                    host=socket.gethostname()[:255],
                    version=__version__[:50],
                    slots=self._slots,
                    started_at=now,
                    lease_until=now + self._times.lease,
                    draining=False,
                )
            )
        self.fence.extend(requested_at, self._times.lease)

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
                .values(lease_until=now + self._times.lease)
            )
            is_renewed = connection.execute(renewal).rowcount == 1
        if is_renewed:
            self.fence.extend(requested_at, self._times.lease)
        else:
            self.fence.close()
        return self.fence.is_valid

    def start_heartbeat(self, on_lost: Callable[[], None]) -> None:
        """Renew the lease in a thread until it is lost, and call `on_lost` in that thread then."""
        if self.expires:
            arguments = (on_lost,)
            threading.Thread(
                target=self._keep_lease, args=arguments, name="heartbeat", daemon=True
            ).start()

    def _keep_lease(self, on_lost: Callable[[], None]) -> None:
        wait = self._times.heartbeat
        while not self._is_stopping.wait(wait):
            wait = self._times.heartbeat
            try:
                self.renew()
            except DatabaseError as error:
                logger.warning("the lease of this process can't be renewed: %s", error.what)
                wait = min(wait, MAX_RETRY_SECONDS)
            if not self.fence.is_valid and not self._is_stopping.is_set():
                on_lost()
                return

    def database_now(self) -> datetime:
        """Return the time of the database's clock, which all executors share."""
        with self._database.reading() as connection:
            return datetime.fromtimestamp(database_time(connection), UTC)

    def is_first(self) -> bool:
        """Return True if this executor is the longest-running one of its kind, which does what only
        one of them is to do. In SQLite it is the only one."""
        if not self.expires:
            return True
        table = EXECUTORS.c
        with self._database.reading() as connection:
            first = (
                select(table.id)
                .where(table.kind == self._kind.value, table.draining.is_(False))
                .where(_has_lease(connection, table.lease_until))
                .order_by(table.started_at, table.id)
                .limit(1)
            )
            return connection.scalar(first) == self.id

    def mark_draining(self) -> None:
        """Record that this process was asked to end: it claims nothing more, and its runs are not
        taken for crashed ones."""
        with self._database.writing() as connection:
            connection.execute(
                update(EXECUTORS).where(EXECUTORS.c.id == self.id).values(draining=True)
            )

    def end_writes(self) -> None:
        """Let this process write nothing more. Its lease is not renewed from now on."""
        self._is_stopping.set()
        self.fence.close()

    def wait_for_database(self) -> None:
        """Wait until the database can be used."""
        while True:
            try:
                self._database.check(EXECUTORS)
            except DatabaseError:
                time.sleep(MAX_RETRY_SECONDS)
            else:
                return

    def close(self) -> None:
        """Close all connections."""
        self._is_stopping.set()
        self._database.close()


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


def _has_lease(connection: Connection, lease_until: ColumnElement[float]) -> ColumnElement[bool]:
    """Return the condition that an executor's lease has not ended."""
    if connection.dialect.name == "sqlite":
        return lease_until > 0
    return lease_until > database_time(connection)


def may_claim(connection: Connection, executor: str) -> bool:
    """Return True if the executor has a lease and was not asked to end."""
    table = EXECUTORS.c
    valid = select(table.id).where(table.id == executor, table.draining.is_(False))
    return connection.scalar(valid.where(_has_lease(connection, table.lease_until))) is not None


@dataclass(frozen=True)
class DeadExecutors:
    """Executors whose rows were removed. stopped: those of them that were asked to end."""

    ids: frozenset[str] = frozenset()
    stopped: frozenset[str] = frozenset()


def has_dead_executors(connection: Connection, executor: str) -> bool:
    """Return True if `remove_dead_executors` would remove a row."""
    dead = select(EXECUTORS.c.id).where(_is_dead(connection, executor, "")).limit(1)
    return connection.scalar(dead) is not None


def remove_dead_executors(
    connection: Connection, executor: str, predecessor: str = ""
) -> DeadExecutors:
    """Remove the executors without a lease, except `executor` itself.

    A lease can't be renewed once its row is removed. To be called in the transaction that revokes
    their claims. predecessor: an executor that is known to be dead although its lease has not
    ended. In SQLite all other executors are dead, because its lock admits no second process.
    """
    removed = connection.execute(
        delete(EXECUTORS)
        .where(_is_dead(connection, executor, predecessor))
        .returning(EXECUTORS.c.id, EXECUTORS.c.draining)
    ).all()
    return DeadExecutors(
        frozenset(row.id for row in removed), frozenset(row.id for row in removed if row.draining)
    )


def _is_dead(connection: Connection, executor: str, predecessor: str) -> ColumnElement[bool]:
    table = EXECUTORS.c
    without_lease = (
        or_(table.id == predecessor, not_(_has_lease(connection, table.lease_until)))
        if connection.dialect.name != "sqlite"
        else true()
    )
    return and_(table.id != executor, without_lease)


def remove_executor(connection: Connection, executor: str) -> None:
    """Remove an executor whose claims are released in the same transaction."""
    connection.execute(delete(EXECUTORS).where(EXECUTORS.c.id == executor))
