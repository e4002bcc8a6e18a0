"""Notes that runs take for later runs: derived from the log, stored per repository, limited.

A note was written by a model that has read text of anybody. It is therefore presented as such, with
the run it comes from, and people see it in the report of the run that took it.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from pydantic import AwareDatetime, ConfigDict, Field

from resolver.config.templates import render
from resolver.errors import ResolverError
from resolver.events.actions import Remember
from resolver.events.base import ObservationBase
from resolver.events.lifecycle import DelegateEvent
from resolver.events.log import Event, parse_logged_event
from resolver.events.observations import ErrorObservation, Remembered
from resolver.events.state import State
from resolver.memory.skills.recaller import NoteReader
from resolver.models.base import DeferredModel
from resolver.security.formats import find_credentials
from resolver.security.redaction import MARK

MAX_NOTES_PER_RUN = 8
"""Maximum notes that one run may take."""

MAX_STORED_NOTES = 40
"""Maximum notes kept per repository; the oldest are dropped."""

MAX_NOTE_LENGTH = 300
MAX_FILE_BYTES = 200_000

_WORD = re.compile(r"\w+")


class StoredNote(DeferredModel):
    """Represents a stored note. run: id of the run that took it. at: time of that run."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    note: str = Field(max_length=MAX_NOTE_LENGTH)
    run: str = Field(max_length=100)
    at: AwareDatetime


def notes_of(events: Iterable[Event]) -> tuple[str, ...]:
    """Return the notes taken in a run and by its delegates, without duplicates.

    Notes are put on one line and truncated to `MAX_NOTE_LENGTH` characters, and at most
    `MAX_NOTES_PER_RUN` are returned. A note that contains a credential, or the mark of a redacted
    one, is left out.
    """
    notes_by_words: dict[tuple[str, ...], str] = {}
    for note in _all_notes(events):
        line = "".join(
            character for character in " ".join(note.split()) if character.isprintable()
        )[:MAX_NOTE_LENGTH]
        if _normalized_words(line) and MARK not in line and not any(find_credentials(line)):
            notes_by_words.setdefault(_normalized_words(line), line)
    return tuple(notes_by_words.values())[:MAX_NOTES_PER_RUN]


def without_known(notes: Iterable[str], text: str) -> tuple[str, ...]:
    """Return the notes that don't say the same as a line of the text."""
    known_notes = {_normalized_words(line) for line in text.splitlines()}
    return tuple(note for note in notes if _normalized_words(note) not in known_notes)


def answer_note(state: State, action: Remember) -> ObservationBase:
    """Return the observation that answers the agent's note.

    state: the run's state, which already contains the action.
    """
    other_notes = [
        note
        for note in notes_of(state.events)
        if _normalized_words(note) != _normalized_words(action.note)
    ]
    if len(other_notes) >= MAX_NOTES_PER_RUN:
        content = render("agent/notes_full.md.j2", most=MAX_NOTES_PER_RUN).strip()
        return ErrorObservation(content=content, code="notes")
    return Remembered(content="Noted for later runs; people see it in the report.")


def _all_notes(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, Remember):
            yield event.note
        elif isinstance(event, DelegateEvent):
            yield from _all_notes([parse_logged_event(event.event)])


def _normalized_words(note: str) -> tuple[str, ...]:
    """Return the words of a note, without case and punctuation, to compare it with other notes."""
    return tuple(_WORD.findall(note.casefold()))


class NoteStore(Protocol):
    """Stores the notes of many repositories, at most `MAX_STORED_NOTES` of each."""

    def read(self, repository: str) -> NoteReader:
        """Return the repository's notes as a run shows them, newest first.

        What can't be read counts as empty.
        """
        ...

    def add(self, repository: str, notes: Sequence[str], run: str, at: datetime) -> tuple[str, ...]:
        """Store the notes and return those that are new.

        A note that says the same as a stored one replaces it, so it counts as taken by this run.
        Raises ResolverError if they can't be stored.
        """
        ...


def shown_notes(notes: Iterable[StoredNote]) -> NoteReader:
    """Return the notes as a run shows them, newest first."""
    newest = sorted(notes, key=lambda note: note.at, reverse=True)
    lines = [f"- {note.note} (run {note.run}, {note.at:%Y-%m-%d})" for note in newest]
    runs = tuple(dict.fromkeys(f"run {note.run}" for note in newest))
    return NoteReader("\n".join(lines), runs)


def merge_notes(
    stored: Iterable[StoredNote], notes: Iterable[StoredNote]
) -> tuple[list[StoredNote], tuple[str, ...]]:
    """Return the notes to store, oldest first, and the texts of those that are new."""
    by_words = {_normalized_words(note.note): note for note in stored}
    new = []
    for note in notes:
        words = _normalized_words(note.note)
        if by_words.pop(words, None) is None:
            new.append(note.note)
        by_words[words] = note
    return list(by_words.values())[-MAX_STORED_NOTES:], tuple(new)


def parse_stored_notes(text: str | bytes) -> list[StoredNote]:
    """Return the notes that `dump_stored_notes` wrote; none if the text is something else."""
    try:
        return [StoredNote.model_validate(item) for item in json.loads(text)][-MAX_STORED_NOTES:]
    except (ValueError, TypeError, RecursionError):
        return []


def dump_stored_notes(notes: Iterable[StoredNote]) -> str:
    """Return the notes as JSON."""
    return json.dumps([note.model_dump(mode="json") for note in notes], indent=1)


class FileNoteStore:
    """Stores notes in a folder, one file per repository. Implements `NoteStore`.

    Safe for use by several processes at once: each file has a lock file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, repository: str) -> NoteReader:
        """Implement `NoteStore.read`."""
        return shown_notes(read_note_file(self._file(repository)))

    def add(self, repository: str, notes: Sequence[str], run: str, at: datetime) -> tuple[str, ...]:
        """Implement `NoteStore.add`."""
        file = self._file(repository)
        added = [StoredNote(note=note, run=run, at=at) for note in notes]
        try:
            with self._locked(file):
                merged, new = merge_notes(read_note_file(file), added)
                # written to a second file and renamed, so that a reader never sees half a file
                temporary_file = file.with_suffix(".new")
                temporary_file.write_text(dump_stored_notes(merged), encoding="utf-8")
                temporary_file.replace(file)
        except OSError as error:
            raise ResolverError(
                f"notes for {repository} could not be kept: {error.strerror}",
                f"make {self._folder} writable, or set notes to off",
            ) from error
        return new

    def _file(self, repository: str) -> Path:
        name = re.sub(r"[^a-z0-9._-]", "~", repository.lower())[-200:]
        return self._folder / f"{name}.json"

    @contextmanager
    def _locked(self, file: Path) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def read_note_file(file: Path) -> list[StoredNote]:
    """Return the notes in a file of `FileNoteStore`; none if it can't be read."""
    try:
        with file.open("rb") as content:
            return parse_stored_notes(content.read(MAX_FILE_BYTES))
    except OSError:
        return []
