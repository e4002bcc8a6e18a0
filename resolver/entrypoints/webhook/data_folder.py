"""The data folder of a server's process: temporary files, by default the runs, and a lock that
prevents a second process from using it."""

import fcntl
import os
import time
from pathlib import Path

from resolver.errors import UsageError
from resolver.runtime.disk import remove_tree

LOCK_SECONDS = 5.0
"""Time for which a lock is waited for. A server that is started again at once after a kill finds
the lock held by a process that the killed one was about to start: between fork(2) and execve(2)
that has all of its descriptors."""

LOCK_POLL_SECONDS = 0.05
"""Interval at which a lock is tried again that another process is about to release."""


class DataFolder:
    """The data folder, created if it does not exist and readable only by its owner.

    It is locked until `close` or the end of the process, however it ends, so that no stale lock
    remains. Raises
    UsageError if the folder can't be written or another server holds the lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _not_writable_error(self.path, error) from error
        self._lock = lock_file(self.path / ".lock")

    def close(self) -> None:
        """Release the lock before the process ends."""
        os.close(self._lock)

    def empty_scratch(self) -> Path:
        """Return an empty folder for clones and local sandboxes. Files of a killed server are
        removed."""
        temporary = self.path / "tmp"
        try:
            if temporary.exists():
                remove_tree(temporary)
            temporary.mkdir(mode=0o700)
        except OSError as error:
            raise _not_writable_error(temporary, error) from error
        return temporary


def lock_file(file: Path, seconds: float = LOCK_SECONDS) -> int:
    """Lock `file`, created if it does not exist, until this process ends. Return its descriptor.

    Raises UsageError if another process still holds the lock after this time.
    """
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _not_writable_error(file.parent, error) from error
    ends_at = time.monotonic() + seconds
    while not _try_lock(descriptor):
        if time.monotonic() < ends_at:
            time.sleep(LOCK_POLL_SECONDS)
            continue
        os.close(descriptor)
        raise UsageError(
            f"another server is already using {file.parent}",
            "stop it first, or give this one its own RESOLVER_DATA_DIR and RESOLVER_DATABASE_URL",
        )
    return descriptor


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _not_writable_error(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"the server's folder {folder} can't be written: {error.strerror}",
        "set RESOLVER_DATA_DIR to another, or correct its permissions",
    )
