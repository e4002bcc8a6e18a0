"""The event stream numbers an event, stores it, then calls the subscribers in order.

The stores here are one in memory and the JSONL file, which is the default. The database store is in
`sql.py`.
"""

import fcntl
import logging
import os
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, TypeVar, get_args

from resolver.errors import LogError, ResolverError, UnstorableEvent
from resolver.events.base import EventBase
from resolver.events.lifecycle import Warned
from resolver.events.log import (
    Event,
    check_lines,
    complete_lines,
    make_storable,
    read_log,
    stored_line,
)


class EventStore(Protocol):
    """An append-only sequence of events with the ids 0, 1, 2, ..."""

    def append(self, event: Event) -> None:
        """Store the event durably: after the return it survives a crash.

        Raises UnstorableEvent for an event that no store can hold, and LogError if it is not the
        next event or can't be written. The log is unchanged in those cases.
        """
        ...

    def __iter__(self) -> Iterator[Event]: ...

    def __len__(self) -> int: ...

    def close(self) -> None:
        """Release the resources of the store."""
        ...


def require_next(event: Event, count: int) -> None:
    """Raise LogError unless `event` is the next one after `count` events."""
    if event.id != count:
        raise LogError(f"event {event.id} can't be appended to a log of {count} events")


class MemoryStore:
    """Events in a list, for tests and for delegates.

    It refuses the events that a file would refuse.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []

    def append(self, event: Event) -> None:
        stored_line(event)
        require_next(event, len(self._events))
        self._events.append(event)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def close(self) -> None:
        """Do nothing: the store holds no resources."""


class LogCopy(Protocol):
    """A second place that holds the lines of a log, such as a database."""

    def open(self, lines: Iterable[bytes]) -> None:
        """Make the copy equal to the lines of the log, which end with a newline. Raises LogError
        and LeaseLost."""
        ...

    def append(self, number: int, kind: str, line: str) -> None:
        """Add the line of an event durably. It has no effect if the line is there already.

        number: how many lines are before it. kind: of the event. line: without a newline. Raises
        LogError if the line can't be stored, and LeaseLost if another process has taken over the
        run.
        """
        ...


class JsonlStore:
    """An append-only file with one event per line, on disk before `append` returns.

    An incomplete last line is what remains if the writer is killed during a write. It is moved to
    `<name>.torn`, and the log continues after the last complete event. The file is locked while the
    store is open, so that no two processes write one log. mode: permissions of a new file, before
    the umask. copy: has each line too before `append` returns; without it the line is removed from
    the file again.
    """

    def __init__(self, path: Path, mode: int = 0o600, copy: LogCopy | None = None) -> None:
        self.path = path
        self._copy = copy
        try:
            is_new = not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode)
            self._file = open(path, "a+b", buffering=0)  # noqa: SIM115 - lives as long as the store
        except OSError as error:
            raise self._error(error) from error
        try:
            _lock(self._file.fileno(), path)
            if is_new:
                _sync_folder(path.parent)
                _sync_folder(path.parent.parent)
            size = _move_torn_line(self._file.fileno(), path)
            # The events are kept until they are first requested: the log is validated when it is
            # opened, and the opener nearly always needs the events next.
            self._unread_events: list[Event] | None = self._check()
            self._count_and_size = (len(self._unread_events), size)
            if copy is not None:
                with open(path, "rb") as lines:
                    copy.open(complete_lines(path, lines))
        except OSError as error:
            self._file.close()
            raise self._error(error) from error
        except ResolverError:
            self._file.close()
            raise

    def append(self, event: Event) -> None:
        line = stored_line(event)
        data = memoryview(line.encode() + b"\n")
        count, size = self._count_and_size
        require_next(event, count)
        self._unread_events = None
        try:
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
            os.fdatasync(self._file.fileno())
            if self._copy is not None:
                self._copy.append(count, event.kind, line)
            # One assignment, so that a signal comes either before or after it.
            self._count_and_size = (count + 1, size + len(data))
        except OSError as error:
            self._discard_partial_write()
            raise self._error(error) from error
        except BaseException:
            self._discard_partial_write()
            raise

    def __iter__(self) -> Iterator[Event]:
        if not len(self):
            return iter(())
        events, self._unread_events = self._unread_events, None
        return read_log(self.path) if events is None else iter(events)

    def __len__(self) -> int:
        return self._count_and_size[0]

    def close(self) -> None:
        self._file.close()

    def _discard_partial_write(self) -> None:
        """Remove the bytes that a failed append has written."""
        with suppress(OSError):
            os.ftruncate(self._file.fileno(), self._count_and_size[1])

    def _check(self) -> list[Event]:
        with open(self.path, "rb") as file:
            return list(check_lines(str(self.path), "line", complete_lines(self.path, file)))

    def _error(self, error: OSError) -> LogError:
        return LogError(
            f"the event log {self.path} can't be written: {error.strerror}",
            "free some disk space or choose another --output",
        )


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LogError(
            f"the event log {path} is being written by another process",
            "wait until that run has ended, or stop it",
        ) from error
    except OSError:
        return  # the file system has no locks


def _sync_folder(folder: Path) -> None:
    """Make new names in a folder survive a crash; syncing the file alone does not: fsync(2)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


BLOCK_BYTES = 64 * 1024


def _move_torn_line(descriptor: int, path: Path) -> int:
    """Move an incomplete last line to the `.torn` file and return the new size of the file."""
    size = os.fstat(descriptor).st_size
    position, tail = size, b""
    while position and b"\n" not in tail:
        start = max(0, position - BLOCK_BYTES)
        tail = os.pread(descriptor, position - start, start)
        position = start
    complete_size = position + tail.rfind(b"\n") + 1
    if complete_size < size:
        torn_path = path.with_suffix(path.suffix + ".torn")
        torn_path.touch(stat.S_IMODE(os.fstat(descriptor).st_mode))
        with open(torn_path, "ab") as torn_file:
            for start in range(complete_size, size, BLOCK_BYTES):
                torn_file.write(os.pread(descriptor, min(BLOCK_BYTES, size - start), start))
            torn_file.write(b"\n")
        os.ftruncate(descriptor, complete_size)
    return complete_size


logger = logging.getLogger("resolver.events")

E = TypeVar("E", bound=EventBase)
Clock = Callable[[], datetime]

Role = Literal[
    "state",  # updates the state; first, so that all others find it up to date
    "memory",  # the messages for the model
    "controller",
    "replay",  # compares the run with a recorded one
    "forge",  # reports to the issue during the run
    "telemetry",
    "live_page",
    "progress",  # lines on the terminal
    "egress",  # adds the sandbox's connections to the log
    "runtime",  # executes actions; last, so that all others know of them before
]
"""Role of a subscriber.

For each event, subscribers are called in this order of roles, and within a role in the order of
subscription.
"""

ROLES: tuple[Role, ...] = get_args(Role)


class Subscriber(Protocol):
    """A function that is called with every event, in the order of ids."""

    def __call__(self, event: Event) -> None: ...


class EventRedactor(Protocol):
    """Replaces secrets in an event. Returns the same object if it holds none."""

    def __call__(self, event: Event) -> Event: ...


def utc_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, eq=False)
class Subscription:
    """A subscriber and its filter. Made by `EventStream.subscribe`."""

    role: Role
    subscriber: Subscriber
    essential: bool
    first_id: int
    types: tuple[type[EventBase], ...]
    accepts: Callable[[Event], bool] | None

    def call(self, event: Event) -> None:
        """Call the subscriber with the event if it passes the filter."""
        if event.id < self.first_id or not isinstance(event, self.types):
            return
        if self.accepts is None or self.accepts(event):
            self.subscriber(event)


class EventStream:
    """The event bus of a run.

    store: makes events durable before any subscriber is called.
    redact: replaces secrets in events before they are stored. It is the second line of defence.
    now: the clock.
    before_append: called before an event is stored; what it raises keeps the event out of the log.

    Events that a subscriber adds while it is being called are queued, so that all subscribers see
    all events in the order of ids. Any thread may add events: they are numbered and stored
    immediately, and one thread at a time calls the subscribers.
    """

    def __init__(
        self,
        store: EventStore,
        redact: EventRedactor | None = None,
        now: Clock = utc_now,
        before_append: Callable[[], None] | None = None,
    ) -> None:
        self._store = store
        self._before_append = before_append
        self._redact = redact
        self._now = now
        self._subscriptions: list[Subscription] = []
        self._queue: deque[Event] = deque()
        self._calls: deque[tuple[Subscription, Event]] = deque()
        self._is_calling = False
        self._lock = threading.Lock()

    def nested(self, store: EventStore) -> "EventStream":
        """Return a separate stream on `store`, for a delegate, with the same redactor and clock."""
        return EventStream(store, self._redact, self._now, self._before_append)

    def subscribe(
        self,
        role: Role,
        subscriber: Subscriber,
        essential: bool = False,
        *,
        types: tuple[type[EventBase], ...] = (EventBase,),
        accepts: Callable[[Event], bool] | None = None,
    ) -> Subscription:
        """Call `subscriber` with the events that are added from now on.

        essential: errors of the subscriber end the run (the runtime, the controller). Any other
            subscriber that raises is unsubscribed, and its error becomes a `warned` event.
        types: only events of these classes.
        accepts: of those, only the events for which it returns True.
        """
        subscription = Subscription(role, subscriber, essential, len(self._store), types, accepts)
        with self._lock:
            subscriptions = [*self._subscriptions, subscription]
            self._subscriptions = sorted(subscriptions, key=lambda s: ROLES.index(s.role))
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop calling a subscriber, even with events that were added before.

        Has no effect if it is not subscribed.
        """
        with self._lock:
            self._subscriptions = [
                other for other in self._subscriptions if other is not subscription
            ]

    def add(self, event: E) -> E:
        """Number, redact and store the event, call the subscribers, and return the stored event.

        Raises LogError if the event can't be stored, and what an essential subscriber raises. In
        the second case the event is in the log, and the subscribers that were not called yet are
        called when the next event is added.
        """
        with self._lock:
            stored = self._store_next(event)  # type: ignore[arg-type]
        self._call_subscribers()
        return stored  # type: ignore[return-value]

    def _store_next(self, event: Event) -> Event:
        if self._before_append is not None:
            self._before_append()
        # The number comes from the store's count, because a signal may have ended an earlier call
        # at any point.
        update = {"id": len(self._store), "timestamp": self._now()}
        stored = event.model_copy(update=update)
        if self._redact:
            stored = self._redact(stored)
        try:
            self._queue.append(stored)
            try:
                self._store.append(stored)
            except UnstorableEvent:
                stored = self._queue[-1] = make_storable(stored)
                self._store.append(stored)
        except BaseException:
            # Subscribers must not see an event that is not stored, and must see one that is.
            if len(self._store) <= stored.id and self._queue and self._queue[-1].id == stored.id:
                self._queue.pop()
            raise
        return stored

    def _call_subscribers(self) -> None:
        """Call the subscribers with all queued events, unless another thread is doing so."""
        is_caller = False
        try:
            with self._lock:
                if self._is_calling:
                    return
                self._is_calling = is_caller = True
            while call := self._next_call():
                self._call_subscriber(*call)
        except BaseException:
            if is_caller:
                self._is_calling = False
            raise

    def _next_call(self) -> tuple[Subscription, Event] | None:
        """Return the next subscriber to call and its event.

        Returns None, and ends the calling, if there is nothing left.
        """
        with self._lock:
            while not self._calls and self._queue:
                event = self._queue.popleft()
                self._calls.extend((subscription, event) for subscription in self._subscriptions)
            if self._calls:
                return self._calls.popleft()
            self._is_calling = False
            return None

    def _call_subscriber(self, subscription: Subscription, event: Event) -> None:
        if subscription not in self._subscriptions:
            return
        if subscription.essential:
            subscription.call(event)
            return
        try:
            subscription.call(event)
        except Exception as error:
            role = subscription.role
            logger.exception("subscriber %s failed at event %d", role, event.id)
            self.unsubscribe(subscription)
            self.add(Warned(about="subscriber", message=f"{role} failed: {error!r}"))
