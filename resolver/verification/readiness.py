"""Determine from the log whether a change is ready for review.

If it is not, its pull request is a draft. The agent's own checks count here: they decide who is
asked to look at the change, not whether it is called verified.
"""

from resolver.models.check_history import CheckHistory
from resolver.models.run import Outcome, RunState, Unverified


def missing_verification(outcome: Outcome | None, check_history: CheckHistory) -> Unverified:
    """Return what the change lacks to be ready for review; "" when it lacks nothing.

    It lacks nothing when the agent calls the work complete, no check fails or still runs, and a
    check has passed since code was last edited.

    Args:
        outcome: How the agent's work ended; None when it did not get that far.
        check_history: The check history of the run.
    """
    if outcome is None or not is_complete(outcome):
        return "unfinished"
    check = check_history.newest
    if check is None:
        if check_history.unclear_after_edit:
            return "unclear"
        if any(each.passed for each in check_history.checks):
            return "edited"
        return "unclear" if check_history.unclear else "unchecked"
    match check.verdict:
        case "passed":
            return ""
        case "failed":
            return "failed"
        case "unfinished":
            return "unended"
        case _:
            return "hidden"


def is_complete(outcome: Outcome) -> bool:
    """Return True if the agent finished and calls its work complete."""
    return outcome.state is RunState.FINISHED and outcome.task_completed
