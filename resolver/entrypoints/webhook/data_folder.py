"""The server's data folder: one folder for each run, temporary files, and a lock that prevents a
second server from using it."""

import fcntl
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from resolver.errors import UsageError
from resolver.runtime.disk import remove_tree

_STOP_NOTE: Final = ".stopped"

LOCK_POLL_SECONDS = 0.05
"""Interval at which a lock is tried again that another process is about to release."""


@dataclass(frozen=True)
class FolderNames:
    """The names of the files and folders that a process has to itself in the data folder.

    lock_seconds: how long it waits for a process that is about to end. A server that is started
    again at once after a kill finds the lock held by a process that the killed one was about to
    start: between fork(2) and execve(2) that has all of its descriptors.
    """

    lock: str = ".lock"
    scratch: str = "tmp"
    executor: str = ".executor"
    lock_seconds: float = 5.0


ONLY_PROCESS = FolderNames()

WEB_PROCESS = FolderNames(scratch="tmp-web", executor=".executor-web")
"""`resolver serve`, whose runs are executed by a child process."""

RUNS_PROCESS = FolderNames(lock=".worker.lock", lock_seconds=10.0)
"""That child process. After a server was killed, its child may need a moment to notice it."""


class DataFolder:
    """The data folder, created if it does not exist and readable only by its owner.

    It is locked until `close` or the end of the process, however it ends, so that no stale lock
    remains. Raises
    UsageError if the folder can't be written or another server holds the lock.
    """

    def __init__(self, path: Path, names: FolderNames = ONLY_PROCESS) -> None:
        self.path, self._names = path.absolute(), names
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _not_writable_error(self.path, error) from error
        self._lock = lock_file(self.path / names.lock, names.lock_seconds)

    def close(self) -> None:
        """Release the lock before the process ends."""
        os.close(self._lock)

    def note_stop(self) -> None:
        """Record that the server was asked to end. After a crash or a kill there is no such
        record."""
        with suppress(OSError):
            (self.path / _STOP_NOTE).touch(mode=0o600)

    def take_stop_note(self) -> bool:
        """Return True if the previous server was asked to end, and remove the record."""
        try:
            (self.path / _STOP_NOTE).unlink()
        except OSError:
            return False
        return True

    def take_predecessor(self, executor: str) -> str:
        """Store the id of the executor that uses this folder now, and return the id of the one
        before it; "" if there was none. The lock of the folder proves that it has ended."""
        file = self.path / self._names.executor
        try:
            predecessor = file.read_text(errors="replace").strip() if file.exists() else ""
            file.write_text(executor)
        except OSError as error:
            raise _not_writable_error(self.path, error) from error
        return predecessor

    def empty_scratch(self) -> Path:
        """Return an empty folder for clones and local sandboxes. Files of a killed server are
        removed."""
        temporary = self.path / self._names.scratch
        try:
            if temporary.exists():
                remove_tree(temporary)
            temporary.mkdir(mode=0o700)
        except OSError as error:
            raise _not_writable_error(temporary, error) from error
        return temporary


def lock_file(file: Path, seconds: float = 0.0) -> int:
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
