"""Support for delegates: their event stream, their first events, and their result.

The stream is nested in the parent's log. The controller itself runs the delegates.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from resolver.agents.base import Agent
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events.base import Source
from resolver.events.lifecycle import (
    DelegateEvent,
    LimitsExtended,
    Resumed,
)
from resolver.events.log import Event, parse_logged_event, stored_line
from resolver.events.observations import DelegateResult
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.models.run import Outcome, RunLimits

MAX_DEPTH = 2
"""Maximum depth of delegation: a delegate of the run's agent may have one of its own."""


class Delegates(Protocol):
    """Creates the agents of delegates."""

    def __call__(self, name: str, stream: EventStream, *, may_delegate: bool) -> Agent:
        """Return an agent that records the replies of its model on `stream`.

        may_delegate: False if a delegate of this agent would be refused, so that it is not offered
        the tool.

        Raises UsageError that lists the known agents if there is none with that name.
        """
        ...


def nested_events(events: Iterable[Event], delegate: int) -> Iterator[Event]:
    """Yield the events of the delegate that the action `delegate` started, as in its own stream."""
    for outer in events:
        if isinstance(outer, DelegateEvent) and outer.delegate == delegate:
            yield parse_logged_event(outer.event)


class NestedStore:
    """An EventStore inside another stream: each event is stored there as a DelegateEvent.

    parent: the stream of the delegating run. The nested store is durable if this stream is.
    parent_events: the parent's events so far. Those of this delegate are loaded from them.
    """

    def __init__(self, parent: EventStream, parent_events: Iterable[Event], delegate: int) -> None:
        self._parent = parent
        self._delegate = delegate
        self._events = list(nested_events(parent_events, delegate))

    def append(self, event: Event) -> None:
        """Store the event. Raises UnstorableEvent like every store."""
        data = json.loads(stored_line(event))
        self._parent.add(DelegateEvent(delegate=self._delegate, event=data))
        self._events.append(event)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def close(self) -> None:
        """Do nothing: the parent's stream stores the events."""


def open_stream(parent: EventStream, state: State, delegate: int) -> tuple[EventStream, State]:
    """Return the stream and the state of the delegate, with its recorded events.

    If the run was resumed after the delegate's last event, that is recorded in the delegate's log
    too, so that the time in between does not count towards its limit.
    """
    store = NestedStore(parent, state.events, delegate)
    stream = parent.nested(store)
    nested = State.fold(store)
    stream.subscribe("state", nested.apply, essential=True)
    resumed = _resumed_since(state.events, delegate) if nested.events else None
    if resumed is not None:
        stream.add(resumed)
    return stream, nested


def _resumed_since(events: Sequence[Event], delegate: int) -> Resumed | None:
    """Return the newest `Resumed` after the last event of the delegate, None if there is none."""
    for event in reversed(events):
        if isinstance(event, Resumed):
            return event
        if isinstance(event, DelegateEvent) and event.delegate == delegate:
            return None
    return None


def add_opening(
    stream: EventStream, state: State, agent: Agent, limits: RunLimits, task: str
) -> None:
    """Add the first events of a delegate: its limits, its system prompt and its task.

    Those that a resumed log already contains are not added again.
    """
    content = render("agent/delegated_task.md.j2", task=task).strip()
    opening = (
        LimitsExtended(limits=limits),
        agent.system_prompt(),
        a.Message(content=content, source=Source.USER),
    )
    for event in opening[len(state.events) :]:
        stream.add(event)


def delegate_result(name: str, outcome: Outcome, state: State) -> DelegateResult:
    """Return the result of a delegate for its parent."""
    content = render(
        "agent/delegate_result.md.j2",
        agent=name,
        outcome=outcome,
        files=state.files_touched,
        remarks=[event for event in state.events if isinstance(event, a.ReviewComment)],
    )
    return DelegateResult(content=content.strip(), state=outcome.state)
