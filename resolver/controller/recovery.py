"""What the log of a killed or recorded run shows to the run that executes it again.

A run can be killed between any two events. Its log contains all that is needed to continue it:
actions without a result are detected, and a replayed run is compared with its recording.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.actions import Recall
from resolver.events.base import ActionBase, EventBase, Source
from resolver.events.lifecycle import ReplayDiverged, RunStarted, roots_of
from resolver.events.log import ACTION_TYPES, OBSERVATION_TYPES, Event
from resolver.events.observations import AgentStateChanged, RecallResult
from resolver.events.state import State
from resolver.events.stream import EventStream

OUTSIDE = (a.McpCall, a.BrowseURL, a.BrowseInteractive)
"""Actions with effects outside the sandbox. They are never executed again.

A fresh sandbox does not undo these effects.
"""

_ENDING = (a.Finish, a.Reject, a.ChangeAgentState)
_ANSWERED_IN_WORDS = (a.Think, a.Message, a.Invalid)


def unanswered_actions(state: State) -> tuple[ActionBase, ...]:
    """Return the actions, in order, whose results are missing in the log.

    Only actions of the agent count: executable ones without an observation, and its last action if
    the controller's reaction is missing, like the state that a Finish leads to or the reply to a
    question.
    """
    owed = {
        id: action
        for id, action in state.pending.items()
        if isinstance(action, ActionBase) and action.source is Source.AGENT
    }
    last = _last_action(state)
    if last is not None and last.id not in owed and not _is_answered(last, state):
        owed[last.id] = last
    return tuple(owed[id] for id in sorted(owed))


def _last_action(state: State) -> ActionBase | None:
    """Return the agent's last action, None if the model has replied since."""
    for event in reversed(state.events):
        if isinstance(event, life.ModelReplied):
            return None
        if isinstance(event, ActionBase) and event.source is Source.AGENT:
            return event
    return None


def _is_answered(action: ActionBase, state: State) -> bool:
    since = state.events[action.id + 1 :]
    if isinstance(action, _ENDING):
        return any(isinstance(e, o.AgentStateChanged) for e in since)
    if isinstance(action, a.Message) and action.wait_for_response:
        return any(isinstance(e, a.Message) and e.source is Source.USER for e in since)
    if isinstance(action, a.CondensationRequest):
        return any(isinstance(e, life.Condensation) for e in since)
    if isinstance(action, _ANSWERED_IN_WORDS):
        return any(e.cause == action.id for e in since)
    return True


MOST_REPORTED = 10
"""Maximum number of differences that are reported; more add no information."""

EXCERPT = 400
"""Maximum length of the excerpts in a difference, in characters."""

_VARIES = re.compile(
    r"/(?:tmp|var/tmp)/[\w./-]+|0x[0-9a-fA-F]+|\b[0-9a-f]{7,64}\b"
    r"|\b\d{4}-\d\d-\d\d\b|\b\d\d?:\d\d(?::\d\d)?\b|\d+\.\d+"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d\d?\b|\[\d+\] +\d+"
)
"""Text that differs between any two runs.

Temporary paths, memory addresses, hashes, dates, times of day, durations, and process ids of
background jobs.
"""

_COMPARED = (
    "kind", "exit_code", "timed_out", "error", "command", "code", "path", "old_str",
    "new_str", "message", "content",
)  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """A difference between a replayed event and the recorded one; the texts are excerpts."""

    recorded_id: int
    field: str
    recorded: str
    found: str

    def event(self) -> ReplayDiverged:
        """Return the difference as an event for the log."""
        return ReplayDiverged(
            recorded_id=self.recorded_id,
            field=self.field,
            recorded=self.recorded,
            found=self.found,
        )


def difference(
    recorded: EventBase, found: EventBase, roots: Sequence[str] = ()
) -> Difference | None:
    """Return the first field in which the two events differ, None if they are equal.

    roots: paths of the repository in the sandboxes, which differ between machines. Text that varies
    between any two runs (times, durations, temporary paths, hashes) is masked before comparing.
    """
    for field in _COMPARED:
        before, now = _text(recorded, field, roots), _text(found, field, roots)
        if _VARIES.sub("#", before) != _VARIES.sub("#", now):
            start = _first_difference(before, now)
            end = start + EXCERPT
            return Difference(recorded.id, field, before[start:end], now[start:end])
    return None


class ReplayCheck:
    """A stream subscriber that compares each action and observation with the recorded one.

    recorded: the events of the recording.
    started: the first event of the replayed run, whose base commit is compared too.
    stream: where differences are recorded.
    root: path of the repository in the sandbox.
    """

    def __init__(
        self, recorded: Sequence[Event], started: RunStarted, stream: EventStream, root: str
    ) -> None:
        self._recorded = [e for e in recorded if _is_compared(e)]
        self._stream = stream
        self._roots = (*roots_of(recorded), root)
        self._position = 0
        self._reported = 0
        before = next((e for e in recorded if isinstance(e, RunStarted)), None)
        if before is not None and before.base != started.base:
            self._report(Difference(before.id, "base", before.base, started.base))

    def __call__(self, event: Event) -> None:
        if not _is_compared(event):
            return
        if self._position < len(self._recorded):
            found = difference(self._recorded[self._position], event, self._roots)
            if found is not None:
                self._report(found)
        self._position += 1

    def _report(self, found: Difference) -> None:
        self._reported += 1
        if self._reported <= MOST_REPORTED:
            self._stream.add(found.event())


def _text(event: EventBase, field: str, roots: Sequence[str]) -> str:
    text = str(getattr(event, field, ""))
    for root in roots:
        text = text.replace(root, "/workspace") if root else text
    return text


def _is_compared(event: Event) -> bool:
    """Return True for the agent's actions and their observations.

    Messages of the user, and the skills that the run loads for them, are not compared one by one;
    the base commits of the two runs are compared instead.
    """
    told = isinstance(event, RecallResult) or (
        isinstance(event, Recall) and event.source is Source.ENVIRONMENT
    )
    if told or isinstance(event, AgentStateChanged) or event.source is Source.USER:
        return False
    return isinstance(event, (*ACTION_TYPES, *OBSERVATION_TYPES))


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    at = next((i for i, (x, y) in pairs if x != y), min(len(one), len(other)))
    return max(0, at - 80)
