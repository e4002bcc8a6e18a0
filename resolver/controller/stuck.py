"""Finds out that a run goes in circles.

Patterns of the reference system: the same action with the same observation, the same action
answered with errors, the same words again and again, two steps in alternation. Numbers,
temporary paths and hashes are levelled first, so that near-identical repeats count.
"""

import re
from collections.abc import Iterable, Sequence

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, EventBase, ObservationBase, Source
from resolver.events.log import Event

REPEATS = 4
ERROR_REPEATS = 3
MESSAGE_REPEATS = 3
ALTERNATIONS = 3
WINDOW = 40
"""Events looked back at; covers every pattern, so that a check costs the same at any length."""

_IDENTITY = {"id", "timestamp", "cause", "tool_call", "thought", "reply", "seconds"}
_NOISE = re.compile(r"/(?:tmp|var/tmp)/[\w./-]+|0x[0-9a-fA-F]+|\b[0-9a-f]{7,40}\b|\d+(?:\.\d+)?")

Step = tuple[str, str, bool]
"""An action and its observation, levelled, and whether it was an error."""


def level(text: str) -> str:
    """`text` without what differs between two otherwise equal runs of a command."""
    return _NOISE.sub("#", text)


def find_repetition(events: Sequence[Event], since: int = 0) -> str | None:
    """What repeats at the end of `events` (only those with id >= since), or None."""
    steps = _steps(e for e in events[-WINDOW:] if e.id >= since)
    if _same(steps, REPEATS):
        return "the same action with the same result"
    if _same([s[:1] for s in steps], ERROR_REPEATS) and all(s[2] for s in steps[-ERROR_REPEATS:]):
        return "the same action that fails each time"
    if _same(_words(events, since), MESSAGE_REPEATS):
        return "the same message"
    tail = steps[-2 * ALTERNATIONS :]
    if len(set(tail)) == 2 and len(tail) == 2 * ALTERNATIONS and tail == tail[:2] * ALTERNATIONS:
        return "the same two actions in turn"
    return None


def _same(items: Sequence[object], count: int) -> bool:
    return len(items) >= count and len({repr(i) for i in items[-count:]}) == 1


def _words(events: Sequence[Event], since: int) -> list[str]:
    return [
        e.content
        for e in events[-WINDOW:]
        if isinstance(e, a.Message) and e.source == Source.AGENT and e.id >= since
    ]


def _steps(events: Iterable[Event]) -> list[Step]:
    steps: list[Step] = []
    actions: dict[int, EventBase] = {}
    for event in events:
        if isinstance(event, ActionBase) and not isinstance(event, a.Message | a.Think):
            actions[event.id] = event
        elif isinstance(event, ObservationBase) and event.cause in actions:
            action = actions.pop(event.cause)
            failed = isinstance(event, o.ErrorObservation) or bool(getattr(event, "exit_code", 0))
            steps.append((_signature(action), _signature(event), failed))
    return steps


def _signature(event: EventBase) -> str:
    return level(event.model_dump_json(exclude=_IDENTITY))
