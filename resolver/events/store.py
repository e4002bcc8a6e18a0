"""Where events are kept: the protocol, a memory store and the JSONL file (the default).

The database is in sql.py.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from resolver.errors import LogError
from resolver.events.log import Event, stored_line
from resolver.events.reading import check_lines, read_log, whole_lines


class EventStore(Protocol):
    """An append-only sequence of events with ids 0, 1, 2, ..."""

    def append(self, event: Event) -> None:
        """Keep the event. When this returns, it survives a crash.

        Raises Unstorable for an event that no store can hold, and LogError when it is not the
        next one or can't be written; the log is then as it was before.
        """
        ...

    def __iter__(self) -> Iterator[Event]: ...

    def __len__(self) -> int: ...

    def close(self) -> None:
        """Give back what the store holds open. What it keeps stays readable elsewhere."""
        ...


def require_next(event: Event, count: int) -> None:
    """Raise LogError unless `event` is the next one after `count` events."""
    if event.id != count:
        raise LogError(f"event {event.id} can't be appended to a log of {count} events")


class MemoryStore:
    """Events in a list; for tests and for delegates. What a file could not hold is refused."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def append(self, event: Event) -> None:
        stored_line(event)
        require_next(event, len(self._events))
        self._events.append(event)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def close(self) -> None:
        """Nothing to give back."""


class JsonlStore:
    """One append-only file, one event a line, on disk before `append` returns.

    A last line without its newline is what a kill in the middle of a write leaves: it is
    moved to `<name>.torn` and the log goes on after the last whole event. The file is locked
    while the store is open, so that no two processes write one log.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            is_new = not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "a+b", buffering=0)  # noqa: SIM115 - lives as long as the store
        except OSError as error:
            raise self._error(error) from error
        try:
            _lock(self._file.fileno(), path)
            if is_new:
                _sync_folder(path.parent)
                _sync_folder(path.parent.parent)
            size = _set_torn_line_aside(self._file.fileno(), path)
            # Kept until they are first asked for: a log is checked when it is opened, and what
            # opens it nearly always wants the events next.
            self._read: list[Event] | None = self._check()
            self._end = (len(self._read), size)
        except OSError as error:
            self._file.close()
            raise self._error(error) from error
        except LogError:
            self._file.close()
            raise

    def append(self, event: Event) -> None:
        data = memoryview(stored_line(event).encode() + b"\n")
        count, size = self._end
        require_next(event, count)
        self._read = None
        try:
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
            os.fdatasync(self._file.fileno())
            # One assignment: a signal comes before it or after it.
            self._end = (count + 1, size + len(data))
        except OSError as error:
            self._take_back()
            raise self._error(error) from error
        except BaseException:
            self._take_back()
            raise

    def __iter__(self) -> Iterator[Event]:
        if not len(self):
            return iter(())
        events, self._read = self._read, None
        return read_log(self.path) if events is None else iter(events)

    def __len__(self) -> int:
        return self._end[0]

    def close(self) -> None:
        self._file.close()

    def _take_back(self) -> None:
        """Remove what a failed append has written."""
        with suppress(OSError):
            os.ftruncate(self._file.fileno(), self._end[1])

    def _check(self) -> list[Event]:
        with open(self.path, "rb") as file:
            return list(check_lines(str(self.path), "line", whole_lines(self.path, file)))

    def _error(self, error: OSError) -> LogError:
        return LogError(
            f"the event log {self.path} can't be written: {error.strerror}",
            "free some disk space or choose another --output",
        )


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LogError(
            f"the event log {path} is being written by another process",
            "wait until that run has ended, or stop it",
        ) from error
    except OSError:
        return  # a file system without locks


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a crash; a file's own sync does not."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


BLOCK = 64 * 1024


def _set_torn_line_aside(descriptor: int, path: Path) -> int:
    """Size of the file once it ends with a whole line, or is empty."""
    size = os.fstat(descriptor).st_size
    end, tail = size, b""
    while end and b"\n" not in tail:
        start = max(0, end - BLOCK)
        tail = os.pread(descriptor, end - start, start)
        end = start
    whole = end + tail.rfind(b"\n") + 1
    if whole < size:
        with open(path.with_suffix(path.suffix + ".torn"), "ab") as aside:
            for start in range(whole, size, BLOCK):
                aside.write(os.pread(descriptor, min(BLOCK, size - start), start))
            aside.write(b"\n")
        os.ftruncate(descriptor, whole)
    return whole
