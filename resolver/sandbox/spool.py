"""Collects output of any size: head and tail in memory, and all of it in a file if it is long.

It does not depend on where the bytes come from. Invalid UTF-8 and NUL become U+FFFD in the text,
not in the file.
"""

import os
from typing import Final, NamedTuple

from .wire import MAX_TEXT

EDGE_BYTES: Final = 4 * MAX_TEXT
"""Bytes kept at each end: a character has at most four bytes in UTF-8."""

MAX_FILE_BYTES: Final = 100 * 1024 * 1024
"""Maximum number of bytes of one output that are written to disk."""

MAX_KEPT_FILES: Final = 8
"""Number of output files that stay in the scratch folder; older ones are removed."""


def readable(text: str) -> str:
    """Return text that any JSON reader, database or model accepts: no lone surrogates, no NUL."""
    try:
        data = text.encode("utf-8", "surrogateescape")  # as Python decodes file names
    except UnicodeEncodeError:
        data = text.encode("utf-8", "surrogatepass")
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")


class Excerpt(NamedTuple):
    """The part of one output that is shown."""

    text: str
    omitted: int  # bytes left out of the middle
    path: str | None  # file with the whole output, if something was left out


class Spool:
    """Collects one output.

    The file `path` is used only if the output is longer than what is shown.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()  # the bytes after the head, of which the last EDGE_BYTES are kept
        self._file: int | None = None
        self._opened = False  # reopening would truncate the file
        self._on_disk = 0

    def add(self, data: bytes) -> None:
        """Append bytes. On a full or read-only disk the file is lost, but never the excerpt."""
        self.total += len(data)
        if not self._opened and self.total > EDGE_BYTES:
            self._open()
        self._write(data)
        head_room = EDGE_BYTES - len(self._head)
        if head_room > 0:
            self._head += data[:head_room]
            data = data[head_room:]
        self._tail += data
        if len(self._tail) > 4 * EDGE_BYTES:
            del self._tail[:-EDGE_BYTES]

    def excerpt(self) -> Excerpt:
        """Stop collecting and return the text; over MAX_TEXT characters, only its head and tail."""
        tail = self._tail
        if self.total == len(self._head) + len(tail):
            text = _text(self._head + tail)
            if len(text) <= MAX_TEXT:
                self._close()
                return Excerpt(readable(text), 0, None)
        if not self._opened:
            self._open()
        self._close()
        head, end = _edges(bytes(self._head), bytes(tail), MAX_TEXT // 2)
        omitted = self.total - len(head) - len(end)
        location = f"the whole output is in {self.path}" if self._on_disk else "it was not kept"
        if 0 < self._on_disk < self.total:
            location = f"its first {self._on_disk} bytes are in {self.path}"
        note = f"\n[... {omitted} bytes left out here; {location} ...]\n"
        path = self.path if self._on_disk else None
        return Excerpt(readable(_text(head)) + note + readable(_text(end)), omitted, path)

    def _open(self) -> None:
        """Open the file, remove old ones in its folder, and write what was collected so far."""
        self._opened = True
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            self._file = os.open(self.path, flags, 0o600)
        except OSError:
            return
        _remove_old(os.path.dirname(self.path), os.path.basename(self.path))
        self._write(bytes(self._head + self._tail))

    def _write(self, data: bytes) -> None:
        """Append to the file, up to MAX_FILE_BYTES bytes; stop writing at the first error."""
        if self._file is None:
            return
        data = data[: MAX_FILE_BYTES - self._on_disk]
        try:
            while data:
                written = os.write(self._file, data)
                self._on_disk += written
                data = data[written:]
        except OSError:
            os.close(self._file)
            self._file = None

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _text(data: bytes | bytearray) -> str:
    """Decode bytes without loss: an invalid byte becomes one character.

    The result can be encoded back, so cuts made in the text can be counted in bytes.
    """
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _edges(head: bytes, tail: bytes, size: int) -> tuple[bytes, bytes]:
    """Return the first and the last `size` characters, cut at a line end if one is near."""
    first = _text(head)[:size]
    cut = first.rfind("\n") + 1
    if cut > size // 2:
        first = first[:cut]
    last = _text((head + tail)[-EDGE_BYTES:])[-size:]
    cut = last.find("\n") + 1
    if 0 < cut < size // 2:
        last = last[cut:]
    return _bytes(first), _bytes(last)


def _remove_old(folder: str, newest: str) -> None:
    """Remove the oldest output files, so that MAX_KEPT_FILES remain with the newest."""
    files = sorted(entry.name for entry in os.scandir(folder) if entry.name != newest)
    for name in files[: max(0, len(files) - MAX_KEPT_FILES + 1)]:
        os.unlink(os.path.join(folder, name))
