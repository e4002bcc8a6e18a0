"""Reads the part of a run's log that its page shows, and what is appended to it later."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from resolver.errors import LogError
from resolver.events.log import Event, open_log_file, parse_line

MAX_SHOWN_BYTES = 1_000_000
"""Number of bytes at the end of a log that are shown at least, in addition to its first event."""

WINDOW_STEP = 500_000
"""Number of bytes by which the shown part moves in a growing log. While it stays, steps keep their
numbers."""

MAX_FIRST_EVENT_BYTES = 500_000
"""Maximum size in bytes of the first event of a long log; a larger one is left out."""


def window_start(size: int) -> int:
    """Return the position in a log of this size from which on its lines are shown."""
    return max(0, size - MAX_SHOWN_BYTES) // WINDOW_STEP * WINDOW_STEP


class LogWindow:
    """The first event of a log and those at its end. Not thread-safe.

    events: as far as they were read. start: position of the window. skipped: number of bytes that
    are left out before it. unread: number of lines that can't be parsed. version: increases when
    the window moves or the log is replaced; what was read before is then no longer in `events`.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self.version = 0
        self._reset(0)

    def _reset(self, start: int) -> None:
        self.events: list[Event] = []
        self.start = start
        self.skipped = 0
        self.unread = 0
        self._position = 0

    @property
    def last_id(self) -> int:
        """The id of the last event; -1 if there is none."""
        return self.events[-1].id if self.events else -1

    def read(self) -> bool:
        """Read what was appended. Return True if anything has changed.

        Raises LogError if the file can't be read as a log, and OSError.
        """
        if not self._log.exists():
            return False
        with open_log_file(self._log) as file:
            end = file.seek(0, 2)
            if end < self._position or window_start(end) != self.start:
                self._reset(window_start(end))
                self.version += 1
            before = len(self.events), self.unread, self.version
            if self._position == 0 and self.start:
                self._open_window(file)
            file.seek(self._position)
            for line in _lines_before(file, end):
                if not line.endswith(b"\n"):
                    break  # the line is being written
                self._position = file.tell()
                self._parse([line])
        return before != (len(self.events), self.unread, self.version) or before[2] != self.version

    def _open_window(self, file: BinaryIO) -> None:
        """Read the first event and find the first line of the window."""
        file.seek(0)
        first = file.readline(MAX_FIRST_EVENT_BYTES)
        first_end = len(first) if first.endswith(b"\n") else 0
        self._parse([first] if first_end else [])
        file.seek(max(first_end, self.start) - 1)
        file.readline(MAX_SHOWN_BYTES)  # the rest of the line that is cut here
        self.skipped = file.tell() - first_end
        self._position = file.tell()

    def _parse(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            try:
                self.events.append(parse_line(line))
            except LogError:
                self.unread += 1


def _lines_before(file: BinaryIO, end: int) -> Iterator[bytes]:
    """Yield the lines that begin before `end`. What is appended meanwhile is read next time."""
    while (remaining := end - file.tell()) > 0 and (line := file.readline(remaining)):
        yield line
