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
END_MARKER = "<!-- end of notes from earlier runs -->"
"""Marks where the next note is inserted.

People may move the section, or delete it to get a new one.
"""

_LINE_COUNT = re.compile(r"(?:Lines [\d-]+ of )?(\d+)(?: lines)?:")


def propose_notes(
    notes: Sequence[str], current_content: bytes | None, executor: Executor, stream: EventStream
) -> tuple[str, ...]:
    """Write the notes into AGENTS.md with the sandbox's editor, and return those that were new.

    current_content: content of the file at the base. Notes that it contains already are skipped.
    """
    new = without_known(notes, (current_content or b"").decode("utf-8", "replace"))
    if not new:
        return ()

    # The edits are logged like those of the agent, but as actions of the environment.
    def execute(action: SandboxAction) -> ObservationBase:
        logged = stream.add(action.model_copy(update={"source": Source.ENVIRONMENT}))
        observation = executor.execute(logged)
        return stream.add(observation.model_copy(update={"cause": logged.id}))

    lines = "".join(f"- {_defuse_markers(note)}\n" for note in new)
    extension = FileEdit(
        command="str_replace", path=NOTES_FILE, old_str=END_MARKER, new_str=f"{lines}{END_MARKER}"
    )
    if not isinstance(execute(extension), ErrorObservation):
        return new
    section = render("run/notes_section.md.j2", lines=lines, end=END_MARKER)
    first_line = execute(FileRead(path=NOTES_FILE, view_range=(1, 1)))
    if isinstance(first_line, FileReadResult):
        match = _LINE_COUNT.match(first_line.content)
        last_line = int(match[1]) if match else 0
        written = execute(
            FileEdit(
                command="insert", path=NOTES_FILE, insert_line=last_line, new_str=f"\n{section}"
            )
        )
    else:
        written = execute(FileWrite(path=NOTES_FILE, content=section))
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
    added = [note for note in notes if f"+- {_defuse_markers(note)}\n".encode() in patch.diff]
    return render("run/agents_told.md.j2", paths=paths, notes=added).strip() if paths else ""


def _defuse_markers(note: str) -> str:
    """Return the note with HTML comment markers defused, so that it can't end its section."""
    return note.replace("<!--", "< !--").replace("-->", "-- >")
