"""Temporary directories of runs that `resolver gc` can tell apart as in use or abandoned.

Each contains a file that its process keeps locked (flock). The kernel releases the lock when the
process ends, however it ends, so a directory without a lock was left behind by a killed run.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "resolver-"
_LOCK: Final = ".resolver.lock"


def lock_directory(folder: Path) -> int:
    """Mark `folder` as in use until the returned descriptor is closed.

    Raises OSError if another process has the lock.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(folder / _LOCK, flags, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """Create a directory that is marked as in use, and remove it on exit."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    descriptor = lock_directory(folder)
    try:
        yield folder
    finally:
        with suppress(OSError):
            remove_locked_directory(folder, shutil.rmtree)
        os.close(descriptor)


def remove_locked_directory(folder: Path, remove: Callable[[Path], object]) -> None:
    """Remove a directory with everything in it, its lock as the last file.

    A process that is killed meanwhile leaves a directory that is still known as abandoned.
    remove: removes a folder with everything in it. Raises OSError.
    """
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            remove(path)
        elif path.name != _LOCK:
            path.unlink()
    remove(folder)


def abandoned_directories(parent: Path, user: int) -> list[Path]:
    """Return the directories in `parent` that killed runs of the user id left behind."""
    return [folder for folder in sorted(parent.glob(f"{PREFIX}*")) if _is_abandoned(folder, user)]


def _is_abandoned(folder: Path, user: int) -> bool:
    try:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != user:
            return False
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
