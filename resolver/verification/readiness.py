"""Whether a change is ready for review, by what is on record; else its pull request is a draft.

What the agent ran itself counts here: it decides who is asked to look, never what is called
verified.
"""

from resolver.models.check_history import CheckHistory
from resolver.models.run import Outcome, RunState, Unverified


def missing_verification(outcome: Outcome | None, course: CheckHistory) -> Unverified:
    """What is missing; "" when the work is said to be done, no check fails or still runs, and one
    has passed since code was last edited. course: what the run's log shows."""
    if outcome is None or outcome.state is not RunState.FINISHED or not outcome.task_completed:
        return "unfinished"
    check = course.newest
    if check is None:
        if course.unclear_after_edit:
            return "unclear"
        if any(each.passed for each in course.checks):
            return "edited"
        return "unclear" if course.unclear else "unchecked"
    match check.verdict:
        case "passed":
            return ""
        case "failed":
            return "failed"
        case "unfinished":
            return "unended"
        case _:
            return "hidden"
