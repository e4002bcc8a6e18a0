"""Runs in a store, as a server writes them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from resolver.config.temporary_directory import temporary_directory
from resolver.events.base import EventBase
from resolver.events.log import dump_line
from resolver.storage.earlier_runs import OUTCOME
from resolver.storage.run_store import RunStore, open_run_store


def write_run(
    store: RunStore,
    run: str,
    events: Iterable[EventBase] = (),
    files: Mapping[str, str] | None = None,
    ended: bool = False,
) -> None:
    """Let a new writer of the run append what its log does not have, and store files.

    events: of the whole log; one that is no continuation of the stored one replaces it.
    """
    with temporary_directory() as temporary:
        folder = temporary / "run"
        writer = store.open_writer(run, folder)
        for name, text in {**(files or {}), **({OUTCOME: "{}"} if ended else {})}.items():
            (folder / name).write_text(text)
        writer.open(f"{dump_line(event)}\n".encode() for event in events)


def stored_in(folder: Path) -> RunStore:
    """The store in a folder."""
    return open_run_store(str(folder), folder, {})


def runs_in(folder: Path) -> list[str]:
    """The ids of the runs in a store, oldest first."""
    return sorted(path.name for path in folder.iterdir() if stored_in(folder).exists(path.name))


def outcomes_in(folder: Path) -> list[bytes]:
    """The outcomes of the runs that are over."""
    store = stored_in(folder)
    found = (store.file(run, OUTCOME) for run in runs_in(folder))
    return [outcome for outcome in found if outcome is not None]


def log_in(folder: Path, run: str) -> bytes:
    """The log of a run."""
    return b"".join(stored_in(folder).lines(run))


def content_of(store: RunStore, run: str) -> dict[str, bytes]:
    """The log and the files of a run, by name."""
    with temporary_directory() as folder:
        store.fetch(run, folder / run)
        return {path.name: path.read_bytes() for path in (folder / run).iterdir()}
