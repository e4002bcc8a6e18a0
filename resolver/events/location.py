"""Opens a log by its location: a file, the folder of a run, or a run in a database."""

from collections.abc import Iterator
from pathlib import Path

from resolver.errors import LogError
from resolver.events.log import Event
from resolver.events.reading import read_log
from resolver.events.sql import read_run

LOG_NAME = "events.jsonl"
"""File name of the log in the folder of a run."""


def open_log(location: str) -> Iterator[Event]:
    """Yield the events of a log, which are validated as they are read.

    location: FILE, the FOLDER of a run, "sqlite:///FILE#RUN", or
        "postgresql://USER:PASSWORD@HOST/DATABASE#RUN".
    Raises LogError.
    """
    if "://" not in location:
        return read_log(log_file(location))
    url, mark, run = location.rpartition("#")
    if not mark or not run:
        raise LogError(
            "the location names a database but no run in it", "add #RUN, the key of the run"
        )
    return read_run(url, run)


def log_file(location: str) -> Path:
    """Return the path of the log file for a file or for the folder of a run."""
    path = Path(location)
    return path / LOG_NAME if path.is_dir() else path
