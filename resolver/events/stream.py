"""The event stream numbers an event, stores it, then calls the subscribers in order.

Its times come from a clock that a change of the system's clock does not move. The stores are in
`stores.py`.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol, TypeVar, get_args

from resolver.errors import UnstorableEvent
from resolver.events.base import EventBase
from resolver.events.lifecycle import Warned
from resolver.events.log import Event, make_storable
from resolver.events.stores import EventStore

logger = logging.getLogger("resolver.events")

E = TypeVar("E", bound=EventBase)
Clock = Callable[[], datetime]

Role = Literal[
    "state",  # updates the state; first, so that all others find it up to date
    "memory",  # the messages for the model
    "controller",
    "forge",  # reports to the issue during the run
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

    def __call__(self, event: Event, /) -> Event: ...


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


@dataclass(frozen=True, eq=False)
class Subscription:
    """A subscriber, which gets the events from `first_id` on. Made by `EventStream.subscribe`."""

    role: Role
    subscriber: Subscriber
    essential: bool
    first_id: int


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
    ) -> Subscription:
        """Call `subscriber` with the events that are added from now on.

        essential: errors of the subscriber end the run (the runtime, the controller). Any other
            subscriber that raises is unsubscribed, and its error becomes a `warned` event.
        """
        subscription = Subscription(role, subscriber, essential, len(self._store))
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
        if subscription not in self._subscriptions or event.id < subscription.first_id:
            return
        if subscription.essential:
            subscription.subscriber(event)
            return
        try:
            subscription.subscriber(event)
        except Exception as error:
            role = subscription.role
            logger.exception("subscriber %s failed at event %d", role, event.id)
            self.unsubscribe(subscription)
            self.add(Warned(about="subscriber", message=f"{role} failed: {error!r}"))
