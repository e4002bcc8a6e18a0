"""What a delegate needs: its stream inside its parent's log, its opening words, and what the parent
is told in the end. The loop that runs it is the controller's own.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from resolver.agents.base import Agent
from resolver.config.templates import render
from resolver.errors import ContextWindowExceeded, LogError, ModelError
from resolver.events import actions as a
from resolver.events.base import Source
from resolver.events.lifecycle import (
    AGENT,
    DelegateEvent,
    LimitsExtended,
    ModelReplied,
    Resumed,
    ServiceReplied,
    Warned,
)
from resolver.events.log import Event, parse_logged_event, stored_line
from resolver.events.observations import DelegateResult
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.models.run import Completion, Outcome, RunLimits

MAX_DEPTH = 2
"""How deep delegates may go: a delegate of the run's agent may have one itself, and that is all."""


class Delegates(Protocol):
    """Makes the agent of a delegate. Raises UsageError that names the agents there are."""

    def __call__(self, name: str, stream: EventStream, *, may_delegate: bool) -> Agent:
        """An agent whose model's replies are recorded on `stream`.

        may_delegate: False where a delegate of it would be refused, so it is not offered.
        """
        ...


def nested_events(events: Iterable[Event], delegate: int) -> Iterator[Event]:
    """The events of the delegate that the action `delegate` started, as its own stream has them.

    Raises LogError when one of them can't be read, or is not the next one.
    """
    number = 0
    for outer in events:
        if not isinstance(outer, DelegateEvent) or outer.delegate != delegate:
            continue
        event = parse_logged_event(outer.event)
        if event.id != number:
            raise LogError(
                f"event {outer.id}: the delegate's event has the id {event.id}, not {number}",
                "the events of a delegate are numbered 0, 1, 2, ... without gap",
            )
        yield event
        number += 1


def reply_in(event: Event) -> tuple[str, Completion | ModelError] | None:
    """What a model gave, as the event records it, at whatever level, and the service that asked: a
    reply, or the error after which the run went on; None when it records neither."""
    match event:
        case ModelReplied(completion=completion):
            return AGENT, completion
        case ServiceReplied(service=service, completion=completion):
            return service, completion
        case a.CondensationRequest(source=Source.AGENT):
            return AGENT, ContextWindowExceeded("the conversation did not fit when it was recorded")
        case Warned(about="condenser", message=message):
            return "condenser", ModelError(message)
        case DelegateEvent():
            return reply_in(parse_logged_event(event.event))
        case _:
            return None


class NestedStore:
    """An EventStore inside another stream: each event becomes a DelegateEvent there.

    parent: the stream of the run that delegates; durable when that one is.
    recorded: its events so far, from which those of this delegate are loaded.
    """

    def __init__(self, parent: EventStream, recorded: Iterable[Event], delegate: int) -> None:
        self._parent = parent
        self._delegate = delegate
        self._events = list(nested_events(recorded, delegate))

    def append(self, event: Event) -> None:
        """Keep the event. Raises Unstorable as every store does."""
        data = json.loads(stored_line(event))
        self._parent.add(DelegateEvent(delegate=self._delegate, event=data))
        self._events.append(event)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def close(self) -> None:
        """Nothing to close: the events are the parent's to keep."""


def open_stream(parent: EventStream, state: State, delegate: int) -> tuple[EventStream, State]:
    """The delegate's stream and state, with what was recorded of it so far. When the run was
    resumed since, the delegate's own log says so: the time between is not its time either."""
    store = NestedStore(parent, state.events, delegate)
    stream = parent.nested(store)
    nested = State.fold(store)
    stream.subscribe("state", nested.apply, essential=True)
    resumed = _resumed_since(state.events, delegate) if nested.events else None
    if resumed is not None:
        stream.add(resumed)
    return stream, nested


def _resumed_since(events: Sequence[Event], delegate: int) -> Resumed | None:
    """The newest Resumed after the last event of the delegate."""
    for event in reversed(events):
        if isinstance(event, Resumed):
            return event
        if isinstance(event, DelegateEvent) and event.delegate == delegate:
            return None
    return None


def add_opening(
    stream: EventStream, state: State, agent: Agent, limits: RunLimits, task: str
) -> None:
    """The delegate's first events: its bounds, the words it works under, its task. What a log
    that was cut off has of them stays."""
    words = render("agent/delegated_task.md.j2", task=task).strip()
    opening = (
        LimitsExtended(limits=limits),
        agent.system_prompt(),
        a.Message(content=words, source=Source.USER),
    )
    for event in opening[len(state.events) :]:
        stream.add(event)


def delegate_result(name: str, outcome: Outcome, state: State) -> DelegateResult:
    """What the parent is told of how the delegate ended."""
    content = render(
        "agent/delegate_result.md.j2",
        agent=name,
        outcome=outcome,
        files=state.files_touched,
        remarks=[event for event in state.events if isinstance(event, a.ReviewComment)],
    )
    return DelegateResult(
        content=content.strip(),
        state=outcome.state,
        outputs={
            "files_touched": list(state.files_touched),
            "task_completed": outcome.task_completed,
            "iterations": outcome.iterations,
            "cost": outcome.cost,
            "seconds": outcome.seconds,
            **_places(outcome),
        },
    )


def _places(outcome: Outcome) -> dict[str, Any]:
    """The places that a delegate was sent to find, where it found some."""
    return {"places": [place.model_dump() for place in outcome.places]} if outcome.places else {}
