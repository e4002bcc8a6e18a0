"""The Outcome, read off the state."""

from typing import Literal, cast

from resolver.events.state import State
from resolver.model import Outcome, RunState


def outcome_of(state: State, limit: str | None = None) -> Outcome:
    """How the run ended, as the log tells it."""
    finish = state.finish
    return Outcome(
        state=state.run_state,
        reason=state.reason,
        limit=cast(Literal["iterations", "budget", "time"] | None, limit),
        message=finish.message if finish else "",
        task_completed=bool(
            finish and finish.task_completed and state.run_state is RunState.FINISHED
        ),
        iterations=state.iterations,
        tokens=state.tokens,
        cost=state.cost,
        seconds=round(state.seconds, 3),
    )
