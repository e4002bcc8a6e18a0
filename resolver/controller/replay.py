"""Compares actions and observations with those of a recording, when logged actions are executed
again or a recorded run is replayed."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from resolver.events.actions import Recall
from resolver.events.base import EventBase, Source
from resolver.events.lifecycle import ReplayDiverged, RunStarted, VerificationCompleted
from resolver.events.log import ACTION_TYPES, OBSERVATION_TYPES, Event
from resolver.events.observations import AgentStateChanged, ChangedPaths, RecallResult

MAX_REPORTED = 10
"""Maximum number of differences that are reported; more add no information."""

_COMPARED_FIELDS = (
    "kind", "base", "command", "code", "path", "exit_code", "timed_out", "error", "changed",
    "sent_to_agent",
)  # fmt: skip
"""The fields that are compared: the base commit, the request, the exit code or error, the changed
files if both logs have them, and whether a verification sent the change back to the agent.

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


def compare_with_recording(
    recorded: Sequence[Event], replayed: Sequence[Event]
) -> list[ReplayDiverged]:
    """Return the first differences between the two logs; [] without a recording."""
    pairs = zip(filter(_is_compared, recorded), filter(_is_compared, replayed), strict=False)
    differences = (find_difference(*pair) for pair in pairs)
    return list(islice(filter(None, differences), MAX_REPORTED))


def _is_compared(event: Event) -> bool:
    """Return True for the start, the agent's actions, their observations, and verifications.

    Messages of the user, and the skills that the run loads for them, are not compared one by one;
    the base commits of the two runs are compared instead.
    """
    is_loaded_skill = isinstance(event, RecallResult) or (
        isinstance(event, Recall) and event.source is Source.ENVIRONMENT
    )
    if is_loaded_skill or isinstance(event, AgentStateChanged) or event.source is Source.USER:
        return False
    return isinstance(event, (RunStarted, VerificationCompleted, *ACTION_TYPES, *OBSERVATION_TYPES))
