"""The facts that the log of a killed run gives to the process that continues it.

A run can be killed between any two events. Its log contains all that is needed to continue it.
"""

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, Source
from resolver.events.state import State

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
