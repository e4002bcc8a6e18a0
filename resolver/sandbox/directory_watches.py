"""Watches the directories of a tree with inotify(7), to tell cheaply that nothing was changed.

A pass over the files of a large repository takes many times longer than most commands. The kernel
reports the changes of a watched directory's entries, so a command that changes nothing costs one
read(2) that returns nothing.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

MAX_WATCHES: Final = 16_384
"""Maximum number of watched directories. The kernel keeps about 1 kB for each."""

# linux/inotify.h
_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _Q_OVERFLOW, _ISDIR = 0x100, 0x200, 0x4000, 0x40000000
_ONLYDIR, _DONT_FOLLOW, _EXCL_UNLINK = 0x01000000, 0x02000000, 0x04000000
_NONBLOCK, _CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC

# A write through a memory mapping is not reported, but the end of the mapping is, as a close of the
# file (_CLOSE_WRITE).
_MASK: Final = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
    | _ONLYDIR | _DONT_FOLLOW | _EXCL_UNLINK
)  # fmt: skip
_HEADER: Final = struct.Struct("iIII")


class DirectoryWatches:
    """Watches on all directories below `root` for which `is_watched` returns True.

    is_watched: is called with a path relative to `root`, whose parent is watched.
    max_watches: with more directories than this, `take` always returns True.

    Changes that the kernel does not report: writes through another hard link of a file, which is
    outside of the watched directories.
    """

    def __init__(
        self, root: str, is_watched: Callable[[bytes], bool], max_watches: int = MAX_WATCHES
    ) -> None:
        self._max_watches = max_watches
        self._root = os.fsencode(root)
        self._is_watched = is_watched
        self._paths: dict[int, bytes] = {}
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = self._libc.inotify_init1(_NONBLOCK | _CLOEXEC)
        self.is_complete = self._descriptor >= 0
        """False if some directory can't be watched, so that a change may have gone unnoticed."""
        self._watch(b"")

    def take(self) -> bool:
        """Return True if something may have changed since the last call."""
        has_changes = not self.is_complete
        for number, mask, name in self._read():
            has_changes = True
            if mask & _Q_OVERFLOW:
                self._watch(b"")
            elif mask & _ISDIR and mask & (_CREATE | _MOVED_TO | _ATTRIB) and number in self._paths:
                self._watch(_join(self._paths[number], name))
        return has_changes

    def close(self) -> None:
        """Remove all watches."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self.is_complete = -1, False

    def _read(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield number of the watch, mask and name of each event that has arrived."""
        while self.is_complete:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return
            position = 0
            while position < len(data):
                number, mask, _, length = _HEADER.unpack_from(data, position)
                position += _HEADER.size
                yield number, mask, data[position : position + length].rstrip(b"\0")
                position += length

    def _watch(self, top: bytes) -> None:
        """Watch a directory and those below it.

        A directory is watched before it is listed: what is created later is reported, and what was
        created before is listed.
        """
        pending = [top]
        while pending and self.is_complete:
            path = pending.pop()
            if path and not self._is_watched(path):
                continue
            self._add(path)
            with suppress(OSError), os.scandir(os.path.join(self._root, path)) as entries:
                pending += (
                    _join(path, entry.name)
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                )

    def _add(self, path: bytes) -> None:
        full_path = os.path.join(self._root, path)
        number = self._libc.inotify_add_watch(self._descriptor, full_path, _MASK)
        if number >= 0:
            self._paths[number] = path
        # A directory that is gone by now has nothing to watch. Any other error, such as the
        # user's limit of watches, leaves changes unnoticed.
        gone = number < 0 and ctypes.get_errno() in {errno.ENOENT, errno.ENOTDIR}
        if (number < 0 and not gone) or len(self._paths) > self._max_watches:
            self.close()


def _join(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name
