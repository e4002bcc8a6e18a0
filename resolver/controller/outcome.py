"""The Outcome, read off the state."""

from resolver.controller.limits import bound_reached
from resolver.events import actions as a
from resolver.events.base import Source
from resolver.events.state import State
from resolver.model import Outcome, RunState


def outcome_of(state: State) -> Outcome:
    """How the run ended, as the log tells it."""
    finish = state.finish
    limit = None
    if state.run_state is RunState.LIMIT and state.last_at is not None:
        # With none reached, it is a call that the rest of the money would not have paid.
        limit = bound_reached(state, state.last_at) or "budget"
    message = finish.message if finish else ""
    if state.run_state is RunState.AWAITING_USER_INPUT:
        message = _question(state)
    return Outcome(
        state=state.run_state,
        reason=state.reason,
        limit=limit,
        message=message,
        cause=finish.root_cause if finish else "",
        change=finish.change if finish else "",
        verification=finish.verification if finish else "",
        remaining=finish.remaining if finish else "",
        places=finish.places if finish else (),
        task_completed=bool(
            finish and finish.task_completed and state.run_state is RunState.FINISHED
        ),
        iterations=state.iterations,
        tokens=state.tokens,
        cost=state.cost,
        seconds=round(state.seconds, 3),
    )


def _question(state: State) -> str:
    for event in reversed(state.events):
        if isinstance(event, a.Message) and event.source is Source.AGENT:
            return event.content
    return ""
