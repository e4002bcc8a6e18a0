"""Spans in memory, and a log on a clock, for tests of what events become."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from resolver.events.log import Event
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream
from resolver.telemetry.span import Attributes, SpanRole

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class MemorySpan:
    """A `RunSpan` that keeps its attributes, events and end in memory."""

    name: str
    start: datetime
    attributes: dict[str, Any]
    role: str = "internal"
    ended: datetime | None = None
    error: str = ""
    children: "list[MemorySpan]" = field(default_factory=list)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    @property
    def traceparent(self) -> str:
        return f"00-{'a' * 32}-{'b' * 16}-01"

    def start_child(
        self, name: str, at: datetime, attributes: Attributes, role: SpanRole = "internal"
    ) -> "MemorySpan":
        child = MemorySpan(name, at, dict(attributes), role)
        self.children.append(child)
        return child

    def set(self, attributes: Attributes) -> None:
        assert self.ended is None
        self.attributes |= attributes

    def rename(self, name: str) -> None:
        self.name = name

    def add_event(self, name: str, at: datetime, attributes: Attributes) -> None:
        self.events.append((name, dict(attributes)))

    def link(self, traceparent: str) -> None:
        self.links.append(traceparent)

    def end(self, at: datetime, error: str = "") -> None:
        assert self.ended is None, f"{self.name} is ended twice"
        self.ended, self.error = at, error

    @property
    def seconds(self) -> tuple[float, float]:
        """Start and end, in seconds since BEGIN."""
        assert self.ended is not None, f"{self.name} is open"
        return (self.start - BEGIN).total_seconds(), (self.ended - BEGIN).total_seconds()

    def walk(self, depth: int = 0) -> "Iterator[tuple[int, MemorySpan]]":
        """Yield this span and those below it, with their depth."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)

    @property
    def outline(self) -> list[str]:
        """The names of the spans below this one, indented."""
        return ["  " * (depth - 1) + span.name for depth, span in self.walk() if depth]

    def find(self, name: str) -> "MemorySpan":
        """Return the only span below this one whose name begins with `name`."""
        [found] = [span for depth, span in self.walk() if depth and span.name.startswith(name)]
        return found


class Timed:
    """A stream whose clock is moved by hand, in seconds since BEGIN."""

    def __init__(self, earlier: MemoryStore | None = None) -> None:
        self.at = 0.0
        self.store = earlier or MemoryStore()
        self.stream = EventStream(self.store, now=self.now)

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.at)

    def add(self, at: float, event: Event) -> Event:
        """Append the event at a time."""
        self.at = at
        return self.stream.add(event)
