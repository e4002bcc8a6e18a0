"""Tests of notes for later runs: derived from the log, stored by repository, bounded."""

import json
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import ResolverError
from resolver.events.actions import Remember
from resolver.events.base import ObservationBase
from resolver.events.lifecycle import DelegateEvent
from resolver.events.observations import ErrorObservation, Remembered
from resolver.events.state import State
from resolver.storage.database import parse_database_url
from resolver.storage.note_table import NoteTable
from resolver.storage.notes import (
    MAX_NOTES_PER_RUN,
    MAX_STORED_NOTES,
    FileNoteStore,
    NoteStore,
    answer_note,
    notes_of,
    without_known,
)
from tests.trace import sample

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_run_includes_the_notes_of_its_delegates_once() -> None:
    inner = {"id": 0, "kind": "remember", "note": "b"}
    deeper = {"id": 0, "kind": "delegate_event", "delegate": 0,
              "event": {"id": 0, "kind": "remember", "note": "c"}}  # fmt: skip
    log = [Remember(note="Say a."), DelegateEvent(delegate=1, event=inner),
           DelegateEvent(delegate=1, event=deeper), Remember(note="say  A")]  # fmt: skip
    assert notes_of(log) == ("Say a.", "b", "c")


@pytest.mark.parametrize(
    "note",
    [
        "the key is [redacted]",
        "use ghp_0123456789abcdefghijklmnopqrstuvwxyzAB",
        "",
        "...",
        "\u200b",
    ],
)
def test_a_note_with_a_secret_or_without_text_is_dropped(note: str) -> None:
    assert notes_of([Remember(note=note)]) == ()


def test_invisible_characters_are_removed() -> None:
    hidden = "".join(chr(0xE0000 + ord(c)) for c in "obey")
    assert notes_of([Remember(note=f"run\nmake{hidden}\u202e \x1b[31mcheck")]) == (
        "run make [31mcheck",
    )


def test_the_number_of_notes_of_a_run_is_limited() -> None:
    assert len(notes_of([Remember(note=f"fact {n}") for n in range(50)])) == MAX_NOTES_PER_RUN


def test_a_run_is_told_when_it_has_taken_as_many_notes_as_it_may() -> None:
    def answered(count: int, note: str) -> ObservationBase:
        """The answer to the note of a run that has taken so many others."""
        notes = [*(f"fact {n}" for n in range(count)), note]
        state = State.fold(sample.numbered(Remember(note=text) for text in notes))
        return answer_note(state, Remember(note=note))

    assert isinstance(answered(MAX_NOTES_PER_RUN - 1, "one more"), Remembered)
    assert isinstance(answered(MAX_NOTES_PER_RUN, "Fact 0."), Remembered), "it has that one"
    refused = answered(MAX_NOTES_PER_RUN, "one more")
    assert isinstance(refused, ErrorObservation) and refused.code == "notes"


def test_notes_that_exist_already_are_left_out() -> None:
    assert without_known(["Use tabs.", "b"], "# House\n- use tabs\n") == ("b",)


@pytest.fixture(params=["files", "database"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NoteStore]:
    """The store of an Action or a terminal, and that of a server."""
    if request.param == "files":
        yield FileNoteStore(tmp_path / "notes")
        return
    table = NoteTable(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"))
    yield table
    table.close()


def test_stored_notes_are_returned_with_their_runs_newest_first(store: NoteStore) -> None:
    store.add("octo/calc", ["one"], "run-1", AT)
    store.add("octo/calc", ["two"], "run-2", AT + timedelta(days=1))
    kept = store.read("Octo/Calc")
    assert kept.text == "- two (run run-2, 2026-03-02)\n- one (run run-1, 2026-03-01)"
    assert kept.sources == ("run run-2", "run run-1")
    assert store.read("octo/other").text == ""


def test_a_repeated_note_is_stored_once_and_counts_as_new(store: NoteStore) -> None:
    assert store.add("a/b", ["Use tabs.", "x"], "run-1", AT) == ("Use tabs.", "x")
    assert store.add("a/b", ["use TABS"], "run-2", AT) == ()
    assert store.read("a/b").text.count("abs") + store.read("a/b").text.count("TABS") == 1


def test_the_oldest_stored_notes_are_removed(store: NoteStore) -> None:
    for n in range(MAX_STORED_NOTES + 10):
        store.add("a/b", [f"note {n}"], f"run-{n}", AT + timedelta(minutes=n))
    text = store.read("a/b").text
    assert len(text.splitlines()) == MAX_STORED_NOTES
    assert "note 9 " not in text and f"note {MAX_STORED_NOTES + 9} " in text


@pytest.mark.parametrize("repository", ["../../etc/passwd", "a/../b", "/root/x", "c:\\x", "é/ü"])
def test_no_name_of_a_repository_leads_out_of_the_folder(repository: str, tmp_path: Path) -> None:
    store = FileNoteStore(tmp_path / "notes")
    store.add(repository, ["one"], "run", AT)
    assert "one" in store.read(repository).text
    assert {p.name for p in tmp_path.iterdir()} == {"notes"}


def test_an_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("a file")
    with pytest.raises(ResolverError, match="a/b could not be kept"):
        FileNoteStore(tmp_path / "notes").add("a/b", ["one"], "run", AT)


@given(st.binary(max_size=60) | st.sampled_from([b"[" * 50_000, b"[{}]", b'{"a": 1}', b"[1]"]))
def test_a_file_with_other_content_has_no_notes(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "a~b.json").write_bytes(content)
        assert FileNoteStore(Path(name)).read("a/b").text == ""


def _add(folder: str, number: int) -> None:
    FileNoteStore(Path(folder)).add("a/b", [f"note {number}"], f"run-{number}", AT)


def test_many_processes_lose_no_note(tmp_path: Path) -> None:
    context = get_context("fork")
    workers = [context.Process(target=_add, args=(str(tmp_path), n)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(json.loads((tmp_path / "a~b.json").read_text())) == 8
