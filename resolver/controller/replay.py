"""Compares a replayed run with its recording and reports where they part."""

from collections.abc import Sequence

from resolver.controller.stuck import level
from resolver.events.base import EventBase
from resolver.events.lifecycle import ReplayDiverged
from resolver.events.log import ACTION_TYPES, OBSERVATION_TYPES, Event
from resolver.events.observations import AgentStateChanged
from resolver.events.stream import EventStream

MOST_REPORTED = 10
"""After so many differences the rest says nothing new."""

EXCERPT = 400
_COMPARED = ("kind", "exit_code", "timed_out", "error", "command", "code", "path", "content")


class ReplayCheck:
    """A stream subscriber: holds each action and observation against the recorded one.

    recorded: the events of the recording. What always differs (ids, times, durations,
    temporary paths, hashes) is levelled before comparing.
    """

    def __init__(self, recorded: Sequence[Event], stream: EventStream, root: str) -> None:
        self._recorded = [e for e in recorded if _is_compared(e)]
        self._stream = stream
        self._root = root
        self._position = 0
        self._reported = 0

    def __call__(self, event: Event) -> None:
        if not _is_compared(event):
            return
        if self._position < len(self._recorded):
            recorded = self._recorded[self._position]
            self._compare(recorded, event)
        self._position += 1

    def _compare(self, recorded: EventBase, found: EventBase) -> None:
        for field in _COMPARED:
            before, now = self._text(recorded, field), self._text(found, field)
            if level(before) != level(now):
                self._report(recorded.id, field, before, now)
                return

    def _text(self, event: EventBase, field: str) -> str:
        text = str(getattr(event, field, ""))
        return text.replace(self._root, "/workspace") if self._root else text

    def _report(self, recorded_id: int, field: str, recorded: str, found: str) -> None:
        self._reported += 1
        if self._reported <= MOST_REPORTED:
            start = _first_difference(recorded, found)
            self._stream.add(
                ReplayDiverged(
                    recorded_id=recorded_id,
                    field=field,
                    recorded=recorded[start : start + EXCERPT],
                    found=found[start : start + EXCERPT],
                )
            )


def _is_compared(event: Event) -> bool:
    return isinstance(event, (*ACTION_TYPES, *OBSERVATION_TYPES)) and not isinstance(
        event, AgentStateChanged
    )


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    at = next((i for i, (x, y) in pairs if x != y), min(len(one), len(other)))
    return max(0, at - 80)
