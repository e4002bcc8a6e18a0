"""The event stream numbers an event, stores it, then calls the subscribers in order.

Its times come from a clock that a change of the system's clock does not move. The stores are in
`stores.py`.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from resolver.errors import UnstorableEvent
from resolver.events.base import EventBase
from resolver.events.lifecycle import Warned
from resolver.events.log import Event, make_storable
from resolver.events.stores import EventStore

logger = logging.getLogger("resolver.events")

E = TypeVar("E", bound=EventBase)
Clock = Callable[[], datetime]


Subscriber = Callable[[Event], None]
"""A function that is called with every event, in the order of ids."""

EventRedactor = Callable[[Event], Event]
"""Replaces secrets in an event. Returns the same object if it holds none."""


def utc_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


class SteadyClock:
    """A clock that starts with the system's time and advances with the monotonic clock.

    Otherwise a correction of the machine's time by an hour would use up an hour of the run's time
    limit. The monotonic clock does not advance either while the machine is suspended, when no run
    works. Source: https://man7.org/linux/man-pages/man2/clock_gettime.2.html

    system: the system's clock. monotonic: returns seconds from any starting point.
    """

    def __init__(
        self, system: Clock = utc_now, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._started_at, self._start = system(), monotonic()

    def __call__(self) -> datetime:
        """Return the present time."""
        return self._started_at + timedelta(seconds=self._monotonic() - self._start)


class EventStream:
    """The event bus of a run.

    store: makes events durable before any subscriber is called.
    redact: replaces secrets in events before they are stored. It is the second line of defence.
    now: the clock.
    before_append: called before an event is stored; what it raises keeps the event out of the log.

    Subscribers are called in the order of their subscription. Events that a subscriber adds while
    it is being called are queued, so that all subscribers see all events in the order of ids. Any
    thread may add events, one at a time.
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
        self._subscribers: dict[str, tuple[Subscriber, bool]] = {}
        self._queue: deque[Event] = deque()
        self._is_calling = False
        self._lock = threading.RLock()

    def nested(self, store: EventStore) -> "EventStream":
        """Return a separate stream on `store`, for a delegate, with the same redactor and clock."""
        return EventStream(store, self._redact, self._now, self._before_append)

    def subscribe(self, name: str, subscriber: Subscriber, essential: bool = False) -> None:
        """Call `subscriber` with the events that are added from now on.

        name: for messages about it. essential: its errors end the run. Any other subscriber that
            raises is not called again, and its error becomes a `warned` event.
        """
        with self._lock:
            self._subscribers[name] = subscriber, essential

    def add(self, event: E) -> E:
        """Number, redact and store the event, call the subscribers, and return the stored event.

        Raises LogError if the event can't be stored, and what an essential subscriber raises. In
        the second case the event is in the log.
        """
        with self._lock:
            stored = self._store_next(event)  # type: ignore[arg-type]
            self._queue.append(stored)
            if not self._is_calling:
                self._is_calling = True
                try:
                    while self._queue:
                        self._call_subscribers(self._queue.popleft())
                finally:
                    self._is_calling = False
        return stored  # type: ignore[return-value]

    def _store_next(self, event: Event) -> Event:
        if self._before_append is not None:
            self._before_append()
        stored = event.model_copy(update={"id": len(self._store), "timestamp": self._now()})
        if self._redact:
            stored = self._redact(stored)
        try:
            self._store.append(stored)
        except UnstorableEvent:
            stored = make_storable(stored)
            self._store.append(stored)
        return stored

    def _call_subscribers(self, event: Event) -> None:
        for name, (subscriber, essential) in tuple(self._subscribers.items()):
            if essential:
                subscriber(event)
                continue
            try:
                subscriber(event)
            except Exception as error:
                logger.exception("subscriber %s failed at event %d", name, event.id)
                del self._subscribers[name]
                self.add(Warned(about="subscriber", message=f"{name} failed: {error!r}"))
