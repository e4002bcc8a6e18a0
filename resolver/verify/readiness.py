"""Whether a change is ready for review, by what is on record; else its pull request is a draft.

What the agent ran itself counts here: it decides who is asked to look, never what is called
verified.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath

from resolver.events.actions import FileEdit, FileWrite
from resolver.events.log import Event
from resolver.model import Evidence, Outcome, RunState, Unverified

_PROSE = {".md", ".rst", ".txt", ".adoc"}


def unverified(
    outcome: Outcome | None, evidence: Evidence | None, events: Iterable[Event]
) -> Unverified:
    """What is missing; "" when the work is said to be done, the newest check on record passed, and
    no code was edited after it. events: the run's log. Edits by the shell are not seen."""
    if outcome is None or outcome.state is not RunState.FINISHED or not outcome.task_completed:
        return "unfinished"
    checks = evidence.commands if evidence else ()
    if not checks:
        return "unchecked"
    if checks[-1].masked:
        return "hidden"
    if checks[-1].exit_code != 0:
        return "failed"
    edited = any(event.id > checks[-1].event_id for event in events if _edits_code(event))
    return "edited" if edited else ""


def _edits_code(event: Event) -> bool:
    if not isinstance(event, FileEdit | FileWrite):
        return False
    return PurePosixPath(event.path).suffix.lower() not in _PROSE
