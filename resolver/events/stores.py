"""Stores of events: the protocol, one in memory, and the JSONL file, which is the default.

A server keeps the lines of that file in its store of runs (`resolver.storage.run_store`).
"""

import fcntl
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from resolver.errors import LogError, ResolverError
from resolver.events.log import Event, check_lines, complete_lines, read_log, stored_line

logger = logging.getLogger("resolver.events.stores")


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


class LogCopy(Protocol):
    """The place that keeps the lines of a log whose file is only a working copy."""

    def open(self, lines: Iterable[bytes]) -> None:
        """Make the copy equal to the lines of the log, which end with a newline. Raises LogError
        and LeaseLost."""
        ...

    def append(self, number: int, line: bytes) -> None:
        """Add the line of an event durably.

        number: how many lines are before it. line: with its newline. Raises LogError if the line
        can't be stored, and LeaseLost if another process has taken over the run.
        """
        ...


class JsonlStore:
    """An append-only file with one event per line, on disk before `append` returns.

    An incomplete last line is what remains if the writer is killed during a write. It is removed,
    with a warning: nothing has acted on its event. The file is locked while the store is open, so
    that no two processes write one log. mode: permissions of a new file, before the umask. copy:
    keeps each line before `append` returns, in place of the disk; a line that it refuses is removed
    from the file again.
    """

    def __init__(self, path: Path, mode: int = 0o600, copy: LogCopy | None = None) -> None:
        self.path = path
        self._copy = copy
        try:
            is_new = not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode)
            self._file = open(path, "a+b", buffering=0)  # noqa: SIM115 - lives as long as the store
        except OSError as error:
            raise self._error(error) from error
        try:
            _lock(self._file.fileno(), path)
            if is_new:
                _sync_folder(path.parent)
                _sync_folder(path.parent.parent)
            with open(path, "rb") as file:
                lines = list(complete_lines(path, file))
            # The events are kept until they are first requested: the log is validated when it is
            # opened, and the opener nearly always needs the events next.
            events = list(check_lines(str(path), "line", lines))
            self._unread_events: list[Event] | None = events
            self._count_and_size = (len(lines), sum(map(len, lines)))
            self._remove_incomplete_line()
            if copy is not None:
                copy.open(lines)
        except OSError as error:
            self._file.close()
            raise self._error(error) from error
        except ResolverError:
            self._file.close()
            raise

    def append(self, event: Event) -> None:
        data = memoryview(stored_line(event).encode() + b"\n")
        count, size = self._count_and_size
        require_next(event, count)
        self._unread_events = None
        try:
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
            if self._copy is None:
                os.fdatasync(self._file.fileno())
            else:
                self._copy.append(count, bytes(data))
            # One assignment, so that a signal comes either before or after it.
            self._count_and_size = (count + 1, size + len(data))
        except OSError as error:
            self._discard_partial_write()
            raise self._error(error) from error
        except BaseException:
            self._discard_partial_write()
            raise

    def __iter__(self) -> Iterator[Event]:
        if not len(self):
            return iter(())
        events, self._unread_events = self._unread_events, None
        return read_log(self.path) if events is None else iter(events)

    def __len__(self) -> int:
        return self._count_and_size[0]

    def close(self) -> None:
        self._file.close()

    def _discard_partial_write(self) -> None:
        """Remove the bytes that a failed append has written."""
        with suppress(OSError):
            os.ftruncate(self._file.fileno(), self._count_and_size[1])

    def _remove_incomplete_line(self) -> None:
        size = self._count_and_size[1]
        excess = os.fstat(self._file.fileno()).st_size - size
        if excess:
            logger.warning("%s: removed an incomplete last line of %d bytes", self.path, excess)
            os.ftruncate(self._file.fileno(), size)

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
