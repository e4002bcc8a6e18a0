"""Finds the folders of runs, where the pages read their logs and results."""

import re
import stat
from pathlib import Path
from typing import Protocol

_RUN = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}", re.ASCII)


def is_run_id(text: str) -> bool:
    """Return True if the text has the form of a run's id, which is safe as the name of a folder."""
    return _RUN.fullmatch(text) is not None


class RunFolders(Protocol):
    """Finds the folder of a run, on whichever machine the run is executed."""

    def folder_of(self, run: str) -> Path | None:
        """Return the folder with the current files of the run; None if there is no such run. May
        block. run: has the form of a run's id."""
        ...


class LocalRunFolders:
    """The folders below the data folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder_of(self, run: str) -> Path | None:
        """Return the run's folder. A link is not followed."""
        folder = self._folder / run
        try:
            return folder if stat.S_ISDIR(folder.lstat().st_mode) else None
        except OSError:
            return None
