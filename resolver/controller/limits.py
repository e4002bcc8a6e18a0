"""The bounds of a run, checked in one place before every step."""

from datetime import datetime

from resolver.errors import LimitReached
from resolver.events.lifecycle import Warned
from resolver.events.state import State
from resolver.model import Limits
from resolver.templates import render

STEPS_LEFT = 3
"""The agent is warned when this many replies are left."""

SHARE_USED = 0.9
"""The agent is warned when this share of the money or the time is used."""


def check_limits(state: State, limits: Limits, now: datetime) -> None:
    """Raise LimitReached when a bound is used up. `now` is UTC."""
    if state.iterations >= limits.max_iterations:
        raise LimitReached(
            "iterations",
            f"limit reached: {state.iterations} of {limits.max_iterations} iterations",
            "raise --max-iterations, or make the issue smaller",
        )
    if state.priced >= limits.max_budget:
        raise LimitReached(
            "budget",
            f"limit reached: ${state.priced:.2f} of ${limits.max_budget:.2f}",
            "raise --max-budget, or choose a cheaper model",
        )
    seconds = _elapsed(state, now)
    if seconds >= limits.max_time:
        raise LimitReached(
            "time",
            f"limit reached: {seconds:.0f} of {limits.max_time:.0f} seconds",
            "raise --max-time, or make the issue smaller",
        )


def limit_warning(state: State, limits: Limits, now: datetime) -> Warned | None:
    """The last warning before a bound, once for each bound; None when there is none to give."""
    near = {
        "iterations": 0 < limits.max_iterations - state.iterations <= STEPS_LEFT < state.iterations,
        "budget": state.priced >= SHARE_USED * limits.max_budget,
        "time": _elapsed(state, now) >= SHARE_USED * limits.max_time,
    }
    for limit, is_near in near.items():
        about = f"limit:{limit}"
        if is_near and about not in state.warned:
            left = limits.max_iterations - state.iterations
            message = render("agent/limit_warning.md.j2", limit=limit, steps_left=left)
            return Warned(about=about, message=message.strip(), to_agent=True)
    return None


def _elapsed(state: State, now: datetime) -> float:
    return (now - state.started_at).total_seconds() if state.started_at else 0.0
