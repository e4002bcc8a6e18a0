"""Detection of actions without a result in the log of a run that was killed.

A run can be killed between any two events. Its log contains all that is needed to continue it.
"""

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, Source
from resolver.events.state import State

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
