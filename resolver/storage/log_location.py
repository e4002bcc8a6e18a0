"""Opens the log of a run by its location: a file, an output folder, or a run in a store."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from resolver.errors import UsageError
from resolver.events.log import Event, read_log
from resolver.storage.earlier_runs import EVENTS
from resolver.storage.run_store import is_run_id, open_run_store


def open_log(location: str, environment: Mapping[str, str]) -> Iterator[Event]:
    """Return the events of a log, which are validated as they are read.

    location: FILE, the output FOLDER of a run, or STORE/RUN, where STORE is a folder or
    `s3://BUCKET/PREFIX`. environment: has the credentials of the bucket. Raises UsageError if there
    is no such run, and LogError if its log can't be read.
    """
    path = log_file(location)
    if path.exists():
        return read_log(path)
    address, _, run = location.rstrip("/").rpartition("/")
    if is_run_id(run) and ("://" in address or Path(location).is_dir()):
        store = open_run_store(address, Path(), environment)
        if store.exists(run):
            return store.events(run)
    raise UsageError(f"{location} contains no run", "give the output folder of a run, or STORE/RUN")


def log_file(location: str) -> Path:
    """Return the path of the log file for a file or for the folder of a run; it does not exist for
    a run in a store."""
    path = Path(location)
    return path / EVENTS if path.is_dir() else path
