"""What a log that was cut off still owes: the actions whose answer is missing.

A run can be killed between any two events. All it needs to go on is in the log; here it is found.
"""

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, Source
from resolver.events.state import State

OUTSIDE = (a.McpCall, a.BrowseURL, a.BrowseInteractive)
"""Actions with effects that a fresh sandbox does not undo: they are never done again."""

_ENDING = (a.Finish, a.Reject, a.ChangeAgentState)
_ANSWERED_IN_WORDS = (a.Think, a.Message, a.Invalid)


def unanswered_actions(state: State) -> tuple[ActionBase, ...]:
    """The actions, in order, that the log does not say the end of.

    Only the agent's own: runnable ones without observation, and its last action when the
    controller's answer to it is missing: the state that a Finish leads to, the reply to a question.
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
    """The agent's last action; None when it has spoken since."""
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
