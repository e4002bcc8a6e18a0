"""Whether a change is ready for review, by what is on record; else its pull request is a draft.

What the agent ran itself counts here: it decides who is asked to look, never what is called
verified.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath

from resolver.events.actions import FileEdit, FileWrite
from resolver.events.log import Event
from resolver.model import Evidence, Outcome, RunState

_PROSE = {".md", ".rst", ".txt", ".adoc"}


def is_ready(outcome: Outcome | None, evidence: Evidence | None, events: Iterable[Event]) -> bool:
    """True when the work is said to be done, the newest check on record passed, and no code was
    edited after it. events: the run's log. Edits by the shell are not seen."""
    if outcome is None or outcome.state is not RunState.FINISHED or not outcome.task_completed:
        return False
    checks = evidence.commands if evidence else ()
    if not checks or checks[-1].exit_code != 0:
        return False
    return all(event.id <= checks[-1].event_id for event in events if _edits_code(event))


def _edits_code(event: Event) -> bool:
    if not isinstance(event, FileEdit | FileWrite):
        return False
    return PurePosixPath(event.path).suffix.lower() not in _PROSE
