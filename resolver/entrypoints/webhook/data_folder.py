"""The server's folder on disk: one folder a run, scratch space, and a lock that keeps a second
server out.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from resolver.errors import UsageError
from resolver.runtime.confined import remove_tree

_SCRATCH: Final = "tmp"
_STOPPED: Final = ".stopped"


class DataFolder:
    """The folder, made when it is missing and readable by its owner alone.

    It is this server's until its process ends: nothing has to be called for that, so that a kill
    leaves no stale lock. Raises UsageError when it can't be written or another server has it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self._lock = lock(self.path / ".lock")

    def note_stop(self) -> None:
        """Note that the server was told to end. A crash or a kill leaves no such note."""
        with suppress(OSError):
            (self.path / _STOPPED).touch(mode=0o600)

    def take_stop_note(self) -> bool:
        """Return whether the server before this one was told to end, and remove the note."""
        try:
            (self.path / _STOPPED).unlink()
        except OSError:
            return False
        return True

    def empty_scratch(self) -> Path:
        """Folder for clones and local sandboxes, without what a killed server left in it."""
        scratch = self.path / _SCRATCH
        try:
            if scratch.exists():
                remove_tree(scratch)
            scratch.mkdir(mode=0o700)
        except OSError as error:
            raise _unwritable(scratch, error) from error
        return scratch


def lock(file: Path) -> int:
    """Lock `file`, made when missing, until this process ends; its descriptor.

    Raises UsageError when another process holds it.
    """
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unwritable(file.parent, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise UsageError(
            f"another server is at work in {file.parent}",
            "stop it first, or give this one its own RESOLVER_DATA_DIR and RESOLVER_DATABASE_URL",
        ) from error
    return descriptor


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"the server's folder {folder} can't be written: {error.strerror}",
        "set RESOLVER_DATA_DIR to another, or put its permissions right",
    )
