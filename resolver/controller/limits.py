"""The limits of a run, and its outcome as its state shows it.

Limits are checked in one place before every step, extended, and shared with delegates. Everything
is derived from the state; the limits in force are `State.limits`.
"""

import math
from datetime import datetime
from typing import Literal

from resolver.config.templates import render
from resolver.errors import LimitReached
from resolver.events import actions as a
from resolver.events.base import Source
from resolver.events.lifecycle import LimitsExtended, Warned
from resolver.events.state import State
from resolver.models.run import Extension, Outcome, RunLimits, RunState

LimitKind = Literal["iterations", "budget", "time"]

WARNING_SHARE = 0.1
"""Share of the iterations, the budget or the time at which the agent is warned.

It is early enough to remove scratch files, run a check and finish.
"""

LAST_WARNING_ITERATIONS = 2
"""The agent gets a last warning when this many iterations are left."""

LAST_WARNING = "limit:iterations:last"

DELEGATE_SHARE = 0.5
"""Share that a delegate gets of what its parent has left of each limit.

The parent thus keeps half of it to work with the result, however the delegate ends.
"""

MIN_DELEGATE_ITERATIONS = 3
"""Minimum number of iterations for a delegate; with fewer it could not achieve anything."""


def check_limits(state: State, now: datetime) -> None:
    """Raise LimitReached if a limit is used up.

    now: the time in UTC.
    """
    limits = state.limits
    match find_reached_limit(state, now):
        case "iterations":
            what = f"{state.iterations} of {limits.max_iterations} iterations are used up"
            next_step = "raise --max-iterations, or make the issue smaller"
            raise LimitReached("iterations", what, next_step)
        case "budget":
            what = f"${state.priced:.2f} of ${limits.max_budget:.2f} are used up"
            raise LimitReached("budget", what, "raise --max-budget, or choose a cheaper model")
        case "time":
            seconds = state.elapsed(now)
            what = f"{seconds:.0f} of {limits.max_time:.0f} seconds are used up"
            raise LimitReached("time", what, "raise --max-time, or make the issue smaller")
        case None:
            pass


def find_reached_limit(state: State, now: datetime) -> LimitKind | None:
    """Return the first limit that is used up, None if there is none."""
    limits = state.limits
    if state.iterations >= limits.max_iterations:
        return "iterations"
    if state.priced >= limits.max_budget:
        return "budget"
    return "time" if state.elapsed(now) >= limits.max_time else None


def limit_warning(state: State, now: datetime) -> Warned | None:
    """Return the next warning about a limit, None if none is due.

    There is one warning per limit when a tenth of it is left, and a last one for the iterations. A
    limit that was extended is warned about again.
    """
    limits = state.limits
    left = limits.max_iterations - state.iterations
    early = math.ceil(WARNING_SHARE * limits.max_iterations)
    due: list[tuple[str, LimitKind]] = []
    # A run with few iterations gets only one warning about them, and none at its first replies.
    is_beginning = state.iterations <= LAST_WARNING_ITERATIONS
    if not is_beginning and 0 < left <= max(early, LAST_WARNING_ITERATIONS):
        is_last = left <= LAST_WARNING_ITERATIONS < early
        due.append((LAST_WARNING if is_last else "limit:iterations", "iterations"))
    if state.priced >= (1 - WARNING_SHARE) * limits.max_budget:
        due.append(("limit:budget", "budget"))
    if state.elapsed(now) >= (1 - WARNING_SHARE) * limits.max_time:
        due.append(("limit:time", "time"))
    for about, limit in due:
        if about not in state.warned:
            message = render(
                "agent/limit_warning.md.j2",
                limit=limit,
                is_last=about == LAST_WARNING,
                steps_left=left,
            )
            return Warned(about=about, message=message.strip(), to_agent=True)
    return None


def extend_limits(
    limits: RunLimits, extension: Extension, max_limits: RunLimits | None
) -> RunLimits:
    """Return the limits plus `extension`, at most `max_limits` and never less than `limits`."""
    requested = {
        "max_iterations": extension.iterations,
        "max_budget": extension.budget,
        "max_time": extension.time,
    }
    extended = {}
    for name, more in requested.items():
        current = getattr(limits, name)
        most = getattr(max_limits, name) if max_limits else math.inf
        extended[name] = max(current, min(current + more, most))
    return RunLimits(**extended)


def extension_between(before: RunLimits, after: RunLimits) -> Extension:
    """Return the difference between two limits."""
    return Extension(
        iterations=after.max_iterations - before.max_iterations,
        budget=after.max_budget - before.max_budget,
        time=after.max_time - before.max_time,
    )


def extension_events(
    limits: RunLimits,
    extension: Extension,
    max_limits: RunLimits | None = None,
    by: str | None = None,
) -> tuple[LimitsExtended | Warned, ...]:
    """Return the events that grant `extension`, () if it grants nothing.

    They are the new limits and a message to the agent, and a warning for people if `max_limits`,
    the highest totals that a request may reach, has reduced the extension.
    """
    requested, granted = (
        extend_limits(limits, extension, None),
        extend_limits(limits, extension, max_limits),
    )
    events: list[LimitsExtended | Warned] = []
    if granted != requested:
        warning = render("run/extension_cut.md.j2", granted=granted, most=max_limits, by=by).strip()
        events.append(Warned(about="extension_cut", message=warning))
    if granted != limits:
        events.append(LimitsExtended(limits=granted, by=by))
        granted_extension = extension_between(limits, granted)
        message = render("agent/extended.md.j2", more=granted_extension).strip()
        events.append(Warned(about="extended", message=message, to_agent=True))
    return tuple(events)


def delegate_limits(state: State, now: datetime) -> RunLimits | None:
    """Return the limits for a delegate of this run, None if too little is left to share."""
    limits = state.limits
    iterations = int((limits.max_iterations - state.iterations) * DELEGATE_SHARE)
    budget = (limits.max_budget - state.priced) * DELEGATE_SHARE
    seconds = (limits.max_time - state.elapsed(now)) * DELEGATE_SHARE
    if iterations < MIN_DELEGATE_ITERATIONS or budget <= 0 or seconds <= 0:
        return None
    return RunLimits(max_iterations=iterations, max_budget=budget, max_time=seconds)


_DECLINED_STATES = frozenset({RunState.FINISHED, RunState.REJECTED, RunState.AWAITING_USER_INPUT})


def derive_outcome(state: State) -> Outcome:
    """Return how the run ended, according to its log."""
    finish = state.finish or a.Finish(message="", task_completed=False)
    limit = None
    if state.run_state is RunState.LIMIT and state.last_at is not None:
        # If no limit is reached, the rest of the budget did not suffice for another model call.
        limit = find_reached_limit(state, state.last_at) or "budget"
    message = finish.message
    if state.run_state is RunState.AWAITING_USER_INPUT:
        message = _find_question(state)
    return Outcome(
        state=state.run_state,
        reason=state.reason,
        next_step=state.next_step,
        because=state.because,
        declined=finish.declined if state.run_state in _DECLINED_STATES else None,
        limit=limit,
        message=message,
        cause=finish.root_cause,
        change=finish.change,
        verification=finish.verification,
        remaining=finish.remaining,
        places=finish.places,
        title=finish.title,
        pull_request_body=finish.pull_request_body,
        task_completed=finish.task_completed and state.run_state is RunState.FINISHED,
        iterations=state.iterations,
        tokens=state.tokens,
        cost=state.cost,
        seconds=round(state.seconds, 3),
    )


def _find_question(state: State) -> str:
    for event in reversed(state.events):
        if isinstance(event, a.Finish):
            return event.message
        if isinstance(event, a.Message) and event.source is Source.AGENT:
            return event.content
    return ""
