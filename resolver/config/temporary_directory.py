"""Folders for a run's temporary files, which a later `resolver gc` can tell from those in use.

Each holds a lock for as long as its process lives: a kill leaves the folder, never the lock.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PREFIX: Final = "resolver-"
_LOCK: Final = ".resolver.lock"


def lock_directory(folder: Path) -> int:
    """Mark `folder` as in use until the descriptor that comes back is closed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(folder / _LOCK, flags, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """A new folder that is removed at the end, and marked as in use until then."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    descriptor = lock_directory(folder)
    try:
        yield folder
    finally:
        os.close(descriptor)
        shutil.rmtree(folder, ignore_errors=True)


def abandoned_directories(where: Path, user: int) -> list[Path]:
    """The folders of killed runs in `where` that belong to the user id."""
    return [f for f in sorted(where.glob(f"{PREFIX}*")) if _is_abandoned(f, user)]


def _is_abandoned(folder: Path, user: int) -> bool:
    try:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != user:
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
