"""Event stores: the protocol, a memory store, and the JSONL file, which is the default.

The database store is in sql.py.
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
    """An append-only sequence of events with the ids 0, 1, 2, ..."""

    def append(self, event: Event) -> None:
        """Store the event durably: after the return it survives a crash.

        Raises UnstorableEvent for an event that no store can hold, and LogError if it is not the
        next event or can't be written. The log is unchanged in those cases.
        """
        ...

    def __iter__(self) -> Iterator[Event]: ...

    def __len__(self) -> int: ...

    def close(self) -> None:
        """Release the resources of the store."""
        ...


def require_next(event: Event, count: int) -> None:
    """Raise LogError unless `event` is the next one after `count` events."""
    if event.id != count:
        raise LogError(f"event {event.id} can't be appended to a log of {count} events")


class MemoryStore:
    """Events in a list, for tests and for delegates.

    It refuses the events that a file would refuse.
    """

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
        """Do nothing: the store holds no resources."""


class JsonlStore:
    """An append-only file with one event per line, on disk before `append` returns.

    An incomplete last line is what remains if the writer is killed during a write. It is moved to
    `<name>.torn`, and the log continues after the last complete event. The file is locked while the
    store is open, so that no two processes write one log.
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
            # The events are kept until they are first requested: the log is validated when it is
            # opened, and the opener nearly always needs the events next.
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
            # One assignment, so that a signal comes either before or after it.
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
        """Remove the bytes that a failed append has written."""
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
        return  # the file system has no locks


def _sync_folder(folder: Path) -> None:
    """Make new names in a folder survive a crash; syncing the file alone does not: fsync(2)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


BLOCK = 64 * 1024


def _set_torn_line_aside(descriptor: int, path: Path) -> int:
    """Move an incomplete last line to the `.torn` file and return the new size of the file."""
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
