"""The event stream: numbers an event, stores it, then tells the subscribers in order."""

import logging
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from pydantic_core import PydanticSerializationError

from resolver.events.base import EventBase
from resolver.events.lifecycle import Warned
from resolver.events.log import Event, storable
from resolver.events.store import EventStore

logger = logging.getLogger("resolver.events")

E = TypeVar("E", bound=EventBase)
Clock = Callable[[], datetime]


class Subscriber(Protocol):
    """Told of every event, in id order."""

    def __call__(self, event: Event) -> None: ...


class Redactor(Protocol):
    """Replaces secrets in an event; returns the same object when there were none."""

    def __call__(self, event: Event) -> Event: ...


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


class EventStream:
    """The only bus of a run.

    store: where events are durable before anybody is told.
    redact: the door at which secrets are replaced (second line of defence).
    now: the clock.

    Events added by a subscriber while it is being told are queued, so that all
    subscribers see all events in id order.
    """

    def __init__(
        self, store: EventStore, redact: Redactor | None = None, now: Clock = utc_now
    ) -> None:
        self._store = store
        self._redact = redact
        self._now = now
        self._next_id = len(store)
        self._subscribers: list[tuple[str, Subscriber, bool]] = []
        self._queue: deque[Event] = deque()
        self._telling = False

    def subscribe(self, role: str, subscriber: Subscriber, essential: bool = False) -> None:
        """Tell `subscriber` of all events from now on.

        essential: its errors end the run (the runtime, the controller); the error of any
        other subscriber becomes a `warned` event.
        """
        self._subscribers.append((role, subscriber, essential))

    def add(self, event: E) -> E:
        """Number, redact, store and tell. Returns the event as it was stored."""
        numbered = event.model_copy(update={"id": self._next_id, "timestamp": self._now()})
        stored = self._redact(numbered) if self._redact else numbered  # type: ignore[arg-type]
        try:
            self._store.append(stored)  # type: ignore[arg-type]
        except PydanticSerializationError:
            stored = storable(stored)  # type: ignore[arg-type]
            self._store.append(stored)
        self._next_id += 1
        self._queue.append(stored)  # type: ignore[arg-type]
        if not self._telling:
            self._tell()
        return stored  # type: ignore[return-value]

    def _tell(self) -> None:
        self._telling = True
        try:
            while self._queue:
                event = self._queue.popleft()
                for role, subscriber, essential in self._subscribers:
                    self._tell_one(role, subscriber, essential, event)
        finally:
            self._telling = False

    def _tell_one(self, role: str, subscriber: Subscriber, essential: bool, event: Event) -> None:
        if essential:
            subscriber(event)
            return
        try:
            subscriber(event)
        except Exception as error:
            logger.exception("subscriber %s failed at event %d", role, event.id)
            self._subscribers = [s for s in self._subscribers if s[0] != role]
            self.add(Warned(about="subscriber", message=f"{role} failed: {error!r}"))
