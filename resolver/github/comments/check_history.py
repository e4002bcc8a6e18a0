"""Prepares the checks in a run's check history for the templates of comments."""

from resolver.github.text.escape import code_span, shorten_text
from resolver.models.check_history import CheckHistory, ObservedCheck


def check_result_text(
    check: ObservedCheck | None, in_table: bool = False
) -> dict[str, object] | None:
    """Return the command, its result, and if it passed, or None if there is no check."""
    if check is None:
        return None
    command = code_span(shorten_text(" ".join(check.command.split()), 150), in_table=in_table)
    return {"command": command, "passed": check.passed, "ended": check.ended}


def course_values(course: CheckHistory, *, in_table: bool = False) -> dict[str, object]:
    """Return the template values about a run's checks and edits."""
    return {
        "edited": course.edited,
        "reproduced": check_result_text(course.reproduced, in_table=in_table),
        "newest": check_result_text(course.newest, in_table=in_table),
        "unclear": course.unclear,
        "unclear_before_edit": course.unclear_before_edit,
        "unclear_after_edit": course.unclear_after_edit,
    }
