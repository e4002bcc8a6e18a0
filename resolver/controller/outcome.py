"""Derivation of a run's outcome from its state."""

import re

from resolver.controller.limits import bound_reached
from resolver.events import actions as a
from resolver.events.base import Source
from resolver.events.state import State
from resolver.models.run import Outcome, RunState

_NOTHING = re.compile(
    r"(?:there is )?(?:nothing|none|no(?: remaining)? (?:work|doubts)|n/?a|-)"
    r"(?: (?:is )?(?:left|remains|remaining|open|else|to do|known))*[.!]?",
    re.IGNORECASE,
)

_DECLINED = frozenset({RunState.REJECTED, RunState.AWAITING_USER_INPUT})


def derive_outcome(state: State) -> Outcome:
    """Return how the run ended, according to its log."""
    finish = state.finish
    limit = None
    if state.run_state is RunState.LIMIT and state.last_at is not None:
        # If no limit is reached, the rest of the budget did not suffice for another model call.
        limit = bound_reached(state, state.last_at) or "budget"
    message = finish.message if finish else ""
    if state.run_state is RunState.AWAITING_USER_INPUT:
        message = _question(state)
    return Outcome(
        state=state.run_state,
        reason=state.reason,
        next_step=state.next_step,
        because=state.because,
        declined=finish.declined if finish and state.run_state in _DECLINED else "",
        limit=limit,
        message=message,
        cause=finish.root_cause if finish else "",
        change=finish.change if finish else "",
        verification=finish.verification if finish else "",
        remaining=_said_to_be_left(finish.remaining) if finish else "",
        places=finish.places if finish else (),
        pull_request_title=finish.pull_request_title if finish else "",
        task_completed=bool(
            finish and finish.task_completed and state.run_state is RunState.FINISHED
        ),
        iterations=state.iterations,
        tokens=state.tokens,
        cost=state.cost,
        seconds=round(state.seconds, 3),
    )


def _said_to_be_left(text: str) -> str:
    """Return the text, or "" if it only says that nothing remains."""
    return "" if _NOTHING.fullmatch(text.strip()) else text


def _question(state: State) -> str:
    for event in reversed(state.events):
        if isinstance(event, a.Finish):
            return event.message
        if isinstance(event, a.Message) and event.source is Source.AGENT:
            return event.content
    return ""
