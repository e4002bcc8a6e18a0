"""Finds the local folder of a run: its event log, request, outcome and other files."""

import stat
from pathlib import Path
from typing import Protocol

from resolver.storage.run_store import is_run_id


class RunFolders(Protocol):
    """Finds the folders of runs."""

    def folder_of(self, run: str) -> Path | None:
        """Return the local folder of the run; None if there is no such run.

        Where the database holds the files of runs, the folder is brought up to date first. A run
        that is active in this process is up to date. If the database can't be used, the local
        folder is returned as it is. run: untrusted text is accepted.
        """
        ...


class LocalRunFolders:
    """The folders of the runs of one machine, below its data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder_of(self, run: str) -> Path | None:
        """Return the folder of the run if it exists and is not a link."""
        return existing_run_folder(self._folder, run)


def existing_run_folder(data_folder: Path, run: str) -> Path | None:
    """Return the folder of a run below the data folder; None if there is none.

    None as well if `run` does not have the form of a run's id, or if the folder is a link.
    """
    if not is_run_id(run):
        return None
    folder = data_folder / run
    try:
        return folder if stat.S_ISDIR(folder.lstat().st_mode) else None
    except OSError:
        return None
