"""The data folder of a server's process: temporary files, by default the runs, and a lock that
prevents a second process from using it."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from resolver.errors import UsageError
from resolver.runtime.disk import remove_tree

LOCK_SECONDS = 5.0
"""Time for which a lock is waited for. A server that is started again at once after a kill finds
the lock held by a process that the killed one was about to start: between fork(2) and execve(2)
that has all of its descriptors."""


def open_data_folder(path: Path) -> Path:
    """Return the folder, created if it does not exist and readable only by its owner, with an empty
    folder `tmp` for clones and local sandboxes: files of a killed server are removed.

    It is locked until the end of the process, however that ends, so that no stale lock remains.
    Raises UsageError if the folder can't be written or another server holds the lock.
    """
    path = path.absolute()
    with _naming(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock_file(path / ".lock")
        if (path / "tmp").exists():
            remove_tree(path / "tmp")
        (path / "tmp").mkdir(mode=0o700)
    return path


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Turn OSError into UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"the server's folder {folder} can't be written: {error.strerror}",
            "set RESOLVER_DATA_DIR or RESOLVER_DATABASE_URL to another, or correct its permissions",
        ) from error


def lock_file(file: Path, seconds: float = LOCK_SECONDS) -> None:
    """Lock `file`, created if it does not exist, until this process ends.

    Raises UsageError if the file can't be opened, or another process still holds the lock after
    this time.
    """
    with _naming(file.parent):
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    ends_at = time.monotonic() + seconds
    while True:
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if time.monotonic() > ends_at:
            os.close(descriptor)
            raise UsageError(
                f"another server is already using {file.parent}",
                "stop it first, or give this one its own RESOLVER_DATA_DIR and "
                "RESOLVER_DATABASE_URL",
            )
        time.sleep(0.05)
