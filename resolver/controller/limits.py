"""The limits of a run, and its outcome as its state shows it.

Limits are checked in one place before every step, extended, and shared with delegates. Everything
is derived from the state; the limits in force are `State.limits`.
"""

import math
import re
from datetime import datetime
from typing import Literal

from resolver.config.templates import render
from resolver.errors import LimitReached
from resolver.events import actions as a
from resolver.events.base import Source
from resolver.events.lifecycle import LimitsExtended, Warned
from resolver.events.state import State
from resolver.models.run import Extension, Outcome, RunLimits, RunState

Bound = Literal["iterations", "budget", "time"]

SHARE_LEFT = 0.1
"""Share of the iterations, the budget or the time at which the agent is warned.

It is early enough to remove scratch files, run a check and finish.
"""

STEPS_LEFT = 2
"""The agent gets a last warning when this many iterations are left."""

LAST_WARNING = "limit:iterations:last"

DELEGATE_SHARE = 0.5
"""Share that a delegate gets of what its parent has left of each limit.

The parent thus keeps half of it to work with the result, however the delegate ends.
"""

LEAST_REPLIES = 3
"""Minimum number of iterations for a delegate; with fewer it could not achieve anything."""


def check_limits(state: State, now: datetime) -> None:
    """Raise LimitReached if a limit is used up.

    now: the time in UTC.
    """
    limits = state.limits
    match bound_reached(state, now):
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


def bound_reached(state: State, now: datetime) -> Bound | None:
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
    used: dict[Bound, bool] = {
        "budget": state.priced >= (1 - SHARE_LEFT) * limits.max_budget,
        "time": state.elapsed(now) >= (1 - SHARE_LEFT) * limits.max_time,
    }
    near = [(f"limit:{limit}", limit) for limit, is_near in used.items() if is_near]
    if about := _iterations_warning(state):
        near.insert(0, (about, "iterations"))
    for about, limit in near:
        if about not in state.warned:
            message = render(
                "agent/limit_warning.md.j2",
                limit=limit,
                is_last=about == LAST_WARNING,
                steps_left=limits.max_iterations - state.iterations,
            )
            return Warned(about=about, message=message.strip(), to_agent=True)
    return None


def _iterations_warning(state: State) -> str:
    """Return the `Warned.about` of the warning that is due for the iterations, "" if none is.

    A run with few iterations gets only one warning, and none at its first replies.
    """
    left = state.limits.max_iterations - state.iterations
    share = math.ceil(SHARE_LEFT * state.limits.max_iterations)
    if state.iterations <= STEPS_LEFT or not 0 < left <= max(share, STEPS_LEFT):
        return ""
    return LAST_WARNING if left <= STEPS_LEFT < share else "limit:iterations"


def extend_limits(limits: RunLimits, extension: Extension, most: RunLimits | None) -> RunLimits:
    """Return the limits plus `extension`, at most `most` and never less than `limits`."""
    wanted = RunLimits(
        max_iterations=limits.max_iterations + max(0, extension.iterations),
        max_budget=limits.max_budget + max(0.0, extension.budget),
        max_time=limits.max_time + max(0.0, extension.time),
    )
    if most is None:
        return wanted
    return RunLimits(
        max_iterations=max(limits.max_iterations, min(wanted.max_iterations, most.max_iterations)),
        max_budget=max(limits.max_budget, min(wanted.max_budget, most.max_budget)),
        max_time=max(limits.max_time, min(wanted.max_time, most.max_time)),
    )


def extension_between(before: RunLimits, after: RunLimits) -> Extension:
    """Return the difference between two limits."""
    return Extension(
        iterations=after.max_iterations - before.max_iterations,
        budget=after.max_budget - before.max_budget,
        time=after.max_time - before.max_time,
    )


def extension_events(
    limits: RunLimits, extension: Extension, most: RunLimits | None = None, by: str = ""
) -> tuple[LimitsExtended | Warned, ...]:
    """Return the events that grant `extension`, () if it grants nothing.

    They are the new limits and a message to the agent, and a warning for people if `most`, the
    highest totals that a request may reach, has reduced the extension.
    """
    wanted, granted = extend_limits(limits, extension, None), extend_limits(limits, extension, most)
    events: list[LimitsExtended | Warned] = []
    if granted != wanted:
        cut = render("run/extension_cut.md.j2", granted=granted, most=most, by=by).strip()
        events.append(Warned(about="extension_cut", message=cut))
    if granted != limits:
        events.append(LimitsExtended(limits=granted, by=by))
        more = extension_between(limits, granted)
        told = render("agent/extended.md.j2", more=more).strip()
        events.append(Warned(about="extended", message=told, to_agent=True))
    return tuple(events)


def share_of(state: State, now: datetime) -> RunLimits | None:
    """Return the limits for a delegate of this run, None if too little is left to share."""
    limits = state.limits
    replies = int((limits.max_iterations - state.iterations) * DELEGATE_SHARE)
    money = (limits.max_budget - state.priced) * DELEGATE_SHARE
    seconds = (limits.max_time - state.elapsed(now)) * DELEGATE_SHARE
    if replies < LEAST_REPLIES or money <= 0 or seconds <= 0:
        return None
    return RunLimits(max_iterations=replies, max_budget=money, max_time=seconds)


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
