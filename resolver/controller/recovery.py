"""The facts that the log of a killed or recorded run gives to the run that executes it again.

A run can be killed between any two events. Its log contains all that is needed to continue it:
actions without a result are detected, and a replayed run is compared with its recording.
"""

from collections.abc import Sequence
from typing import Any

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.actions import Recall
from resolver.events.base import ActionBase, EventBase, Source
from resolver.events.lifecycle import ReplayDiverged, RunStarted
from resolver.events.log import ACTION_TYPES, OBSERVATION_TYPES, Event
from resolver.events.observations import AgentStateChanged, ChangedPaths, RecallResult
from resolver.events.state import State
from resolver.events.stream import EventStream

_ENDING_ACTIONS = (a.Finish, a.Reject)
_CONTROLLER_ANSWERED_ACTIONS = (a.Think, a.Message, a.Invalid)


def unanswered_actions(state: State) -> tuple[ActionBase, ...]:
    """Return the actions, in order, whose results are missing in the log.

    Only actions of the agent count: executable ones without an observation, and its last action if
    the controller's reaction is missing, like the state that a Finish leads to or the reply to a
    question.
    """
    unanswered = {
        id: action
        for id, action in state.pending.items()
        if isinstance(action, ActionBase) and action.source is Source.AGENT
    }
    last_action = _last_action(state)
    if (
        last_action is not None
        and last_action.id not in unanswered
        and not _is_answered(last_action, state)
    ):
        unanswered[last_action.id] = last_action
    return tuple(unanswered[id] for id in sorted(unanswered))


def _last_action(state: State) -> ActionBase | None:
    """Return the agent's last action, None if the model has replied since."""
    for event in reversed(state.events):
        if isinstance(event, life.ModelReplied):
            return None
        if isinstance(event, ActionBase) and event.source is Source.AGENT:
            return event
    return None


def _is_answered(action: ActionBase, state: State) -> bool:
    later_events = state.events[action.id + 1 :]
    if isinstance(action, _ENDING_ACTIONS):
        return any(isinstance(event, o.AgentStateChanged) for event in later_events)
    if isinstance(action, a.Message) and action.wait_for_response:
        return any(
            isinstance(event, a.Message) and event.source is Source.USER for event in later_events
        )
    if isinstance(action, a.CondensationRequest):
        return any(isinstance(event, life.Condensation) for event in later_events)
    if isinstance(action, _CONTROLLER_ANSWERED_ACTIONS):
        return any(event.cause == action.id for event in later_events)
    return True


SANDBOX_LOST = "sandbox_lost"
"""Code of the warning that the sandbox ended or hung, and of the result of an action that caused it
twice."""


def lost_sandboxes(state: State, action: ActionBase) -> int:
    """Return how many sandboxes have ended or hung during the action, which has no result yet."""
    later_events = state.events[action.id + 1 :]
    return sum(isinstance(e, life.Warned) and e.about == SANDBOX_LOST for e in later_events)


MAX_REPORTED = 10
"""Maximum number of differences that are reported; more add no information."""

_COMPARED_FIELDS = (
    "kind", "command", "code", "path", "exit_code", "timed_out", "error", "changed",
)  # fmt: skip
"""The fields of actions and observations that are compared: the request, the exit code or error,
and the changed files if both logs have them.

Texts are not compared: times, paths and process ids in them differ in every run.
"""


def find_difference(recorded: EventBase, replayed: EventBase) -> ReplayDiverged | None:
    """Return the first field in which the two events differ, None if they are equal."""
    for field in _COMPARED_FIELDS:
        before, after = getattr(recorded, field, None), getattr(replayed, field, None)
        is_known = field != "changed" or None not in (before, after)
        if is_known and before != after:
            return ReplayDiverged(
                recorded_id=recorded.id, field=field, recorded=_text(before), found=_text(after)
            )
    return None


def _text(value: Any) -> str:
    return ", ".join(value.paths) if isinstance(value, ChangedPaths) else str(value)


class ReplayCheck:
    """A stream subscriber that compares each action and observation with the recorded one.

    recorded: the events of the recording.
    started: the first event of the replayed run, whose base commit is compared too.
    stream: where differences are recorded.
    """

    def __init__(self, recorded: Sequence[Event], started: RunStarted, stream: EventStream) -> None:
        self._recorded = [event for event in recorded if _is_compared(event)]
        self._stream = stream
        self._position = 0
        self._reported = 0
        recorded_start = next((event for event in recorded if isinstance(event, RunStarted)), None)
        if recorded_start is not None and recorded_start.base != started.base:
            self._report(
                ReplayDiverged(
                    recorded_id=recorded_start.id,
                    field="base",
                    recorded=recorded_start.base,
                    found=started.base,
                )
            )

    def __call__(self, event: Event) -> None:
        if not _is_compared(event):
            return
        if self._position < len(self._recorded):
            first_difference = find_difference(self._recorded[self._position], event)
            if first_difference is not None:
                self._report(first_difference)
        self._position += 1

    def _report(self, difference: ReplayDiverged) -> None:
        self._reported += 1
        if self._reported <= MAX_REPORTED:
            self._stream.add(difference)


def _is_compared(event: Event) -> bool:
    """Return True for the agent's actions and their observations.

    Messages of the user, and the skills that the run loads for them, are not compared one by one;
    the base commits of the two runs are compared instead.
    """
    is_loaded_skill = isinstance(event, RecallResult) or (
        isinstance(event, Recall) and event.source is Source.ENVIRONMENT
    )
    if is_loaded_skill or isinstance(event, AgentStateChanged) or event.source is Source.USER:
        return False
    return isinstance(event, (*ACTION_TYPES, *OBSERVATION_TYPES))
