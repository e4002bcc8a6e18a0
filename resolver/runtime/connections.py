"""Adds a sandbox's connections to the event stream, in the thread of the run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from resolver.events.base import ObservationBase
from resolver.events.lifecycle import Egress
from resolver.events.log import Event
from resolver.events.stream import EventStream


@contextmanager
def record_connections(stream: EventStream, take: Callable[[], list[Egress]]) -> Iterator[None]:
    """Add the events from `take` after each observation, and once more at the end of the block."""

    def add() -> None:
        for connection in take():
            stream.add(connection)

    def look(event: Event) -> None:
        if isinstance(event, ObservationBase):
            add()

    stream.subscribe("egress", look)
    try:
        yield
    finally:
        add()
