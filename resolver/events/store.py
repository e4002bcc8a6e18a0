"""Where events are kept: the protocol, a memory store and the JSONL file (the default)."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from resolver.errors import LogError
from resolver.events.log import Event, dump_line, parse_line


class EventStore(Protocol):
    """An append-only sequence of events with ids 0, 1, 2, ..."""

    def append(self, event: Event) -> None:
        """Keep the event. When this returns, it survives a crash."""
        ...

    def __iter__(self) -> Iterator[Event]: ...

    def __len__(self) -> int: ...


class MemoryStore:
    """Events in a list; for tests and for delegates."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def append(self, event: Event) -> None:
        self._events.append(event)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)


class JsonlStore:
    """One append-only file, one event a line, on disk before `append` returns.

    A last line without its newline is what a kill in the middle of a write leaves: it is
    moved to `<name>.torn` and the log goes on after the last whole event.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        _set_torn_line_aside(path)
        self._count = sum(1 for _ in read_log(path)) if path.exists() else 0
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - lives as long as the store

    def append(self, event: Event) -> None:
        data = dump_line(event).encode() + b"\n"
        try:
            self._file.write(data)
            os.fdatasync(self._file.fileno())
        except OSError as error:
            raise LogError(
                f"the event log {self.path} can't be written: {error.strerror}",
                "free some disk space or choose another --output",
            ) from error
        self._count += 1

    def __iter__(self) -> Iterator[Event]:
        return read_log(self.path)

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        self._file.close()


def _set_torn_line_aside(path: Path) -> None:
    if not path.exists() or path.stat().st_size == 0:
        return
    data = path.read_bytes()
    if data.endswith(b"\n"):
        return
    end = data.rfind(b"\n") + 1
    path.with_suffix(path.suffix + ".torn").write_bytes(data[end:])
    os.truncate(path, end)


def read_log(path: Path) -> Iterator[Event]:
    """All whole events of a log file, checked to be numbered without gap.

    A torn last line is left out. Raises LogError with the line's number.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise LogError(f"{path} can't be read: {error.strerror}", "check the path") from error
    with file:
        for number, line in enumerate(file):
            if not line.endswith(b"\n"):
                return
            try:
                event = parse_line(line)
            except LogError as error:
                raise LogError(f"{path}, line {number + 1}: {error.what}") from error
            if event.id != number:
                raise LogError(
                    f"{path}, line {number + 1}: the event's id is {event.id}, not {number}",
                    "events are numbered 0, 1, 2, ... without gap",
                )
            yield event
