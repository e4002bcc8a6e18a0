"""The event stream: numbers an event, stores it, then tells the subscribers in order."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeVar, get_args

from resolver.errors import UnstorableEvent
from resolver.events.base import EventBase
from resolver.events.lifecycle import Warned
from resolver.events.log import Event, storable
from resolver.events.store import EventStore

logger = logging.getLogger("resolver.events")

E = TypeVar("E", bound=EventBase)
Clock = Callable[[], datetime]

Role = Literal[
    "state",  # the fold; first, so that all others find it up to date
    "memory",  # what the model is told
    "controller",
    "replay",  # holds the run against a recorded one
    "forge",  # reports to the issue while the run is at work
    "telemetry",
    "live_page",
    "progress",  # lines on the terminal
    "egress",  # puts the sandbox's connections into the log
    "runtime",  # acts on events; last, so that all others know what is being done meanwhile
]
"""Who listens. Of each event the roles are told in this order, and within a role in the order in
which they subscribed."""

ROLES: tuple[Role, ...] = get_args(Role)


class Subscriber(Protocol):
    """Told of every event, in id order."""

    def __call__(self, event: Event) -> None: ...


class EventRedactor(Protocol):
    """Replaces secrets in an event; returns the same object when there were none."""

    def __call__(self, event: Event) -> Event: ...


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, eq=False)
class Subscription:
    """One subscriber with what it wants to be told. Made by `EventStream.subscribe`."""

    role: Role
    tell: Subscriber
    essential: bool
    since: int
    types: tuple[type[EventBase], ...]
    wanted: Callable[[Event], bool] | None

    def call(self, event: Event) -> None:
        """Tell of the event, if it is one that is wanted."""
        if event.id < self.since or not isinstance(event, self.types):
            return
        if self.wanted is None or self.wanted(event):
            self.tell(event)


class EventStream:
    """The only bus of a run.

    store: where events are durable before anybody is told.
    redact: the door at which secrets are replaced (second line of defence).
    now: the clock.

    Events added by a subscriber while it is being told are queued, so that all subscribers see
    all events in id order. Any thread may add: the event is numbered and stored at once; one
    thread at a time tells.
    """

    def __init__(
        self, store: EventStore, redact: EventRedactor | None = None, now: Clock = utc_now
    ) -> None:
        self._store = store
        self._redact = redact
        self._now = now
        self._subscriptions: list[Subscription] = []
        self._queue: deque[Event] = deque()
        self._calls: deque[tuple[Subscription, Event]] = deque()
        self._telling = False
        self._lock = threading.Lock()

    def nested(self, store: EventStore) -> "EventStream":
        """A stream of its own on `store`, for a delegate: same redactor, same clock."""
        return EventStream(store, self._redact, self._now)

    def subscribe(
        self,
        role: Role,
        subscriber: Subscriber,
        essential: bool = False,
        *,
        types: tuple[type[EventBase], ...] = (EventBase,),
        wanted: Callable[[Event], bool] | None = None,
    ) -> Subscription:
        """Tell `subscriber` of the events that are added from now on.

        essential: its errors end the run (the runtime, the controller); any other subscriber
            that fails is told no more, and its error becomes a `warned` event.
        types: only events of these classes. wanted: of those, only the ones it says True to.
        """
        subscription = Subscription(role, subscriber, essential, len(self._store), types, wanted)
        with self._lock:
            subscriptions = [*self._subscriptions, subscription]
            self._subscriptions = sorted(subscriptions, key=lambda s: ROLES.index(s.role))
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Tell it no more, not even what was added before. Nothing happens when it is not there."""
        with self._lock:
            self._subscriptions = [s for s in self._subscriptions if s is not subscription]

    def add(self, event: E) -> E:
        """Number, redact, store and tell. Returns the event as it was stored.

        Raises LogError when it can't be stored, and what an essential subscriber raises; the
        event is then in the log, and whoever was not told of it is told with the next one.
        """
        with self._lock:
            stored = self._store_next(event)  # type: ignore[arg-type]
        self._tell()
        return stored  # type: ignore[return-value]

    def _store_next(self, event: Event) -> Event:
        # The store's own count is the truth: a signal may end an earlier call at any point.
        update = {"id": len(self._store), "timestamp": self._now()}
        stored = event.model_copy(update=update)
        if self._redact:
            stored = self._redact(stored)
        try:
            self._queue.append(stored)
            try:
                self._store.append(stored)
            except UnstorableEvent:
                stored = self._queue[-1] = storable(stored)
                self._store.append(stored)
        except BaseException:
            # What is not in the store must not be told; what is there must be.
            if len(self._store) <= stored.id and self._queue and self._queue[-1].id == stored.id:
                self._queue.pop()
            raise
        return stored

    def _tell(self) -> None:
        mine = False
        try:
            with self._lock:
                if self._telling:
                    return
                self._telling = mine = True
            while call := self._next_call():
                self._tell_one(*call)
        except BaseException:
            if mine:
                self._telling = False
            raise

    def _next_call(self) -> tuple[Subscription, Event] | None:
        """Who is told next of what; None, and no longer telling, when all have been told all."""
        with self._lock:
            while not self._calls and self._queue:
                event = self._queue.popleft()
                self._calls.extend((subscription, event) for subscription in self._subscriptions)
            if self._calls:
                return self._calls.popleft()
            self._telling = False
            return None

    def _tell_one(self, subscription: Subscription, event: Event) -> None:
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
