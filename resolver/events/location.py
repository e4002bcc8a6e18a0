"""Where a log is: a file, the folder of a run, or a database and a run in it."""

from collections.abc import Iterator
from pathlib import Path

from resolver.errors import LogError
from resolver.events.log import Event
from resolver.events.reading import read_log
from resolver.events.sql import read_run

LOG_NAME = "events.jsonl"
"""What the log is called in a run's folder."""


def open_log(location: str) -> Iterator[Event]:
    """The events of a log, checked as they are read.

    location: FILE, or the FOLDER of a run, or "sqlite:///FILE#RUN", or
        "postgresql://USER:PASSWORD@HOST/DATABASE#RUN". Raises LogError.
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
    """The log's file, given itself or the folder it is in."""
    path = Path(location)
    return path / LOG_NAME if path.is_dir() else path
