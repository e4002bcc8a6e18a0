"""Keeps a run's notes for later runs: proposed in AGENTS.md, or stored with Resolver's data.

In both cases, people are informed.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from resolver.config.templates import render
from resolver.controller.controller import Executor
from resolver.errors import ResolverError
from resolver.events.actions import FileEdit, FileRead, FileWrite
from resolver.events.base import ObservationBase, Source
from resolver.events.log import SandboxAction
from resolver.events.observations import ErrorObservation, FileReadResult
from resolver.events.stream import EventStream
from resolver.memory.notes import NoteStore, without_known
from resolver.memory.skills.reading import is_shown_to_agents
from resolver.models.run import Patch

NOTES_FILE = "AGENTS.md"
END = "<!-- end of notes from earlier runs -->"
"""Marks where the next note is inserted.

People may move the section, or delete it to get a new one.
"""

_COUNT = re.compile(r"(?:Lines [\d-]+ of )?(\d+)(?: lines)?:")


def propose_notes(
    notes: Sequence[str], before: bytes | None, executor: Executor, stream: EventStream
) -> tuple[str, ...]:
    """Write the notes into AGENTS.md with the sandbox's editor, and return those that were new.

    before: content of the file at the base. Notes that it contains already are skipped.
    """
    new = without_known(notes, (before or b"").decode("utf-8", "replace"))
    if not new:
        return ()

    # The edits are logged like those of the agent, but as actions of the environment.
    def done(action: SandboxAction) -> ObservationBase:
        added = stream.add(action.model_copy(update={"source": Source.ENVIRONMENT}))
        observation = executor.execute(added)
        return stream.add(observation.model_copy(update={"cause": added.id}))

    lines = "".join(f"- {_inert(note)}\n" for note in new)
    longer = FileEdit(command="str_replace", path=NOTES_FILE, old_str=END, new_str=f"{lines}{END}")
    if not isinstance(done(longer), ErrorObservation):
        return new
    section = render("run/notes_section.md.j2", lines=lines, end=END)
    seen = done(FileRead(path=NOTES_FILE, view_range=(1, 1)))
    if isinstance(seen, FileReadResult):
        count = _COUNT.match(seen.content)
        last = int(count[1]) if count else 0
        written = done(
            FileEdit(command="insert", path=NOTES_FILE, insert_line=last, new_str=f"\n{section}")
        )
    else:
        written = done(FileWrite(path=NOTES_FILE, content=section))
    return () if isinstance(written, ErrorObservation) else new


def render_notes(
    notes: Sequence[str], store: NoteStore | None, repository: str, run: str, at: datetime
) -> str:
    """Store the notes and return a text about it for people, "" if there are none.

    store: None if there is no place to store notes; the text says so then.
    """
    if not notes:
        return ""
    if store is None:
        return render("run/notes_lost.md.j2", notes=notes).strip()
    try:
        store.add(repository, notes, run, at)
    except ResolverError as error:
        return f"{error.what}."
    return render("run/notes_kept.md.j2", notes=notes).strip()


def render_instruction_changes(patch: Patch, notes: Sequence[str]) -> str:
    """Return a text for people about changes to the agents' instructions, "" if there are none.

    notes: those that `propose_notes` may have written as a part of the change.
    """
    paths = [change.path for change in patch.files if is_shown_to_agents(change.path)]
    added = [note for note in notes if f"+- {_inert(note)}\n".encode() in patch.diff]
    return render("run/agents_told.md.j2", paths=paths, notes=added).strip() if paths else ""


def _inert(note: str) -> str:
    """Return the note with HTML comment markers defused, so that it can't end its section."""
    return note.replace("<!--", "< !--").replace("-->", "-- >")
