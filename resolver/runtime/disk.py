"""Files that a sandbox writes: the limit on their size, and access without following any link.

The kernel limits a single file at once (RLIMIT_FSIZE: getrlimit(2)). The total is measured
repeatedly from the host, so it may exceed the limit for a few seconds.

Each component of a path is opened relative to the folder before it (openat(2) with O_NOFOLLOW), so
replacing a component in the meantime has no effect.
"""

import contextlib
import itertools
import logging
import os
import shutil
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from resolver.errors import NestedTooDeeply, SandboxError

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@contextmanager
def open_below(base: Path, path: str, flags: int) -> Iterator[int]:
    """Open the absolute `path`, which must lie below `base`, and yield its file descriptor.

    Raises SandboxError for a path elsewhere, a missing file, and a link in any component.
    """
    try:
        parts = _parts(str(PurePosixPath(path).relative_to(base)))
        with contextlib.ExitStack() as opened:
            folder = os.open(base, _FOLDER_FLAGS)
            opened.callback(os.close, folder)
            for name in parts[:-1]:
                folder = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
                opened.callback(os.close, folder)
            file = os.open(parts[-1], flags | os.O_NOFOLLOW, dir_fd=folder)
            opened.callback(os.close, file)
            yield file
    except (OSError, ValueError) as error:
        raise SandboxError(
            f"{path} can't be reached in the sandbox's folder: {error}",
            "the run's event log shows what ran in the sandbox",
        ) from error


def unpack_below(tar: tarfile.TarFile, folder: int) -> None:
    """Unpack the files, folders and symbolic links of a tar into the open folder `folder`.

    Raises ValueError or OSError for other kinds of members and for names that lead elsewhere.
    """
    for member in tar:
        with contextlib.ExitStack() as opened:
            parts = _parts(member.name)
            parent = folder
            for name in parts if member.isdir() else parts[:-1]:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=parent)
                parent = os.open(name, _FOLDER_FLAGS, dir_fd=parent)
                opened.callback(os.close, parent)
            if member.isdir():
                continue
            with contextlib.suppress(FileNotFoundError):
                os.unlink(parts[-1], dir_fd=parent)
            content = tar.extractfile(member) if member.isreg() else None
            if content is not None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                file = os.open(parts[-1], flags, member.mode & 0o777, dir_fd=parent)
                with os.fdopen(file, "wb") as target:
                    shutil.copyfileobj(content, target)
            elif member.issym():
                os.symlink(member.linkname, parts[-1], dir_fd=parent)
            else:
                raise ValueError(f"{member.name} is neither file, folder nor symbolic link")


def remove_tree(folder: Path) -> None:
    """Remove the folder with everything in it, including folders without permissions.

    Nested folders are moved to the top before they are emptied: a sandbox can nest them deeper than
    a path may be long, than calls may be nested, and than files may be open.
    Call it only after the last process that could write there has ended.
    """
    with _opened(os.open(folder, _FOLDER_FLAGS)) as top:
        taken = set(os.listdir(top))  # noqa: PTH208
        free_names = (name for name in map(str, itertools.count()) if name not in taken)
        folders = _remove_files(top)
        while folders:
            name = folders.pop()
            with _opened(os.open(name, _FOLDER_FLAGS, dir_fd=top)) as current:
                for nested in _remove_files(current):
                    new_name = next(free_names)
                    os.rename(nested, new_name, src_dir_fd=current, dst_dir_fd=top)
                    folders.append(new_name)
            os.rmdir(name, dir_fd=top)
    folder.rmdir()


def _remove_files(folder: int) -> list[str]:
    """Remove all in the open folder but its folders, and make these accessible. Return them."""
    with os.scandir(folder) as listing:
        entries = list(listing)
    folders = []
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            os.chmod(entry.name, 0o700, dir_fd=folder)
            folders.append(entry.name)
        else:
            os.unlink(entry.name, dir_fd=folder)
    return folders


@contextmanager
def _opened(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _parts(path: str) -> tuple[str, ...]:
    """Return the components of a relative path without `..`. Raises ValueError for other paths."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise ValueError(f"{path!r} is not a path below a folder")
    return parts


MIN_PAUSE_SECONDS: Final = 3.0
"""Shortest pause between two measurements, in seconds."""

PAUSE_FACTOR: Final = 20
"""A pause is at least this many times as long as the measurement before it."""

logger = logging.getLogger(__name__)


class DiskWatch:
    """Ends a sandbox that has written too much. It watches from its construction until `close`.

    measure: returns the bytes that the sandbox has written, or raises NestedTooDeeply.
    kill: kills the sandbox.
    max_bytes: limit in bytes.
    pause: shortest pause between two measurements, in seconds.
    """

    def __init__(
        self,
        measure: Callable[[], int],
        kill: Callable[[], None],
        max_bytes: int,
        pause: float = MIN_PAUSE_SECONDS,
    ) -> None:
        self._measure = measure
        self._kill = kill
        self._max_bytes = max_bytes
        self._pause = pause
        self._closed = threading.Event()
        self.reason: str | None = None
        """Why the sandbox was ended; None if it was not."""
        self._thread = threading.Thread(target=self._watch, name="disk-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop measuring. May be called more than once."""
        self._closed.set()
        self._thread.join(timeout=1)

    def _watch(self) -> None:
        pause = self._pause
        while not self._closed.wait(pause):
            measured_since = time.monotonic()
            try:
                written = self._measure()
            except NestedTooDeeply as error:
                self.reason = error.what
                self._kill()
                return
            except SandboxError as error:
                logger.warning("what the sandbox wrote can't be measured: %s", error)
                continue
            pause = max(self._pause, PAUSE_FACTOR * (time.monotonic() - measured_since))
            if written > self._max_bytes:
                self.reason = (
                    f"it was stopped because it had written {written / 1e6:,.0f} MB, over its "
                    f"limit of {self._max_bytes / 1e6:,.0f} MB"
                )
                self._kill()
                return


_MAX_RELATIVE_PATH: Final = 2000
"""Characters of a path after which folders are opened relative to the last one. The kernel refuses
paths of more than 4096 bytes (PATH_MAX in path_resolution(7))."""

_MAX_OPEN_FOLDERS: Final = 50


def bytes_below(folder: Path) -> int:
    """Return the disk space that the files below a folder use, in bytes. Links are not followed.

    Raises NestedTooDeeply for folders whose size can't be determined.
    """
    with _opened(os.open(folder, _FOLDER_FLAGS)) as top:
        return _bytes_below(top, 1)


def _bytes_below(top: int, open_folders: int) -> int:
    if open_folders > _MAX_OPEN_FOLDERS:
        raise NestedTooDeeply(
            "it was stopped because it had nested folders so deeply that its disk space can't be "
            "measured",
            "look at what it ran in the run's event log",
        )
    total, folders = 0, ["."]
    while folders:
        path = folders.pop()
        try:
            with _opened(os.open(path, _FOLDER_FLAGS, dir_fd=top)) as current:
                if len(path) > _MAX_RELATIVE_PATH:
                    total += _bytes_below(current, open_folders + 1)
                    continue
                with os.scandir(current) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(f"{path}/{entry.name}")
                        else:
                            total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:  # removed in the meantime, or not readable
            continue
    return total
