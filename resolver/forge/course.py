"""The words for a check that a run's log shows."""

from resolver.course import Check
from resolver.forge.escape import code_span, shortened


def check_words(check: Check | None, in_table: bool = False) -> dict[str, object] | None:
    """Command, end, and whether it passed, for a template."""
    if check is None:
        return None
    command = code_span(shortened(" ".join(check.command.split()), 150), in_table=in_table)
    return {"command": command, "passed": check.passed, "ended": check.ended}
