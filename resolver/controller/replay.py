"""Compares a replayed run with its recording and reports where they part."""

import re
from collections.abc import Sequence

from resolver.events.base import EventBase, Source
from resolver.events.lifecycle import ReplayDiverged, RunStarted
from resolver.events.log import ACTION_TYPES, OBSERVATION_TYPES, Event
from resolver.events.observations import AgentStateChanged
from resolver.events.stream import EventStream

MOST_REPORTED = 10
"""After so many differences the rest says nothing new."""

EXCERPT = 400

_VARIES = re.compile(
    r"/(?:tmp|var/tmp)/[\w./-]+|0x[0-9a-fA-F]+|\b[0-9a-f]{7,64}\b"
    r"|\b\d{4}-\d\d-\d\d\b|\b\d\d?:\d\d(?::\d\d)?\b|\d+\.\d+"
)
"""Temporary paths, addresses, hashes, dates, times of day, durations: what no two runs share."""

_COMPARED = (
    "kind", "exit_code", "timed_out", "error", "command", "code", "path", "old_str",
    "new_str", "message", "content",
)  # fmt: skip


class ReplayCheck:
    """A stream subscriber: holds each action and observation against the recorded one.

    recorded: the events of the recording. started: the replayed run's first event, whose base is
    compared as well. root: the repository's path in the sandbox, which differs between machines.
    What always differs (times, durations, temporary paths, hashes) is levelled before comparing.
    """

    def __init__(
        self, recorded: Sequence[Event], started: RunStarted, stream: EventStream, root: str
    ) -> None:
        self._recorded = [e for e in recorded if _is_compared(e)]
        self._stream = stream
        self._root = root
        self._position = 0
        self._reported = 0
        before = next((e for e in recorded if isinstance(e, RunStarted)), None)
        if before is not None and before.base != started.base:
            self._report(before.id, "base", before.base, started.base)

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
            if _VARIES.sub("#", before) != _VARIES.sub("#", now):
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
    """Actions of the agent and what came of them; the user's words are compared by the base."""
    if isinstance(event, AgentStateChanged) or event.source is Source.USER:
        return False
    return isinstance(event, (*ACTION_TYPES, *OBSERVATION_TYPES))


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    at = next((i for i, (x, y) in pairs if x != y), min(len(one), len(other)))
    return max(0, at - 80)
