"""Saves the readable events of a damaged log file to a new file. The damaged file is only read."""

import hashlib
import json
import os
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from pydantic_core import from_json

from resolver.errors import LogError, LogTooNew
from resolver.events.log import MAX_LINE_BYTES, open_log_file, parse_line
from resolver.models.base import JsonObject

LOST_ID = -1
"""Value of a required reference to an event that is lost."""

MAX_REPORTED_DAMAGES = 1_000
"""Number of damages that are reported individually."""


@dataclass(frozen=True)
class Damage:
    """A damaged line: what was wrong, and what was done with it."""

    line: int
    what: str


@dataclass(frozen=True)
class RepairedLog:
    """Result of a repair.

    lines: number of lines of the damaged log.
    kept_lines: number of lines of the new log.
    damages: the first damages.
    more_damages: number of further damages.
    """

    lines: int
    kept_lines: int
    damages: tuple[Damage, ...]
    more_damages: int


def repair_log(path: Path, output: Path) -> RepairedLog:
    """Write every line of `path` that is an event to `output`, with new numbers without gap.

    References to events by id (cause, reply, forgotten, ...) are updated to the new ids, and
    removed if the event is lost; required references become LOST_ID. If the log has no damage,
    nothing is written.

    Raises LogError if `output` exists or can't be written, or if there is nothing to save, and
    LogTooNew if the log has an unknown version.
    """
    with open_log_file(path) as file:
        repair = _Repair(path)
        lines = [line for numbered in _bounded_lines(file) for line in repair.take(*numbered)]
    if not lines:
        raise LogError(f"{path} has no line that is an event", "nothing of it can be saved")
    if repair.damages:
        _write(output, lines)
    reported = tuple(repair.damages[:MAX_REPORTED_DAMAGES])
    return RepairedLog(repair.lines, len(lines), reported, len(repair.damages) - len(reported))


@dataclass
class _Numbering:
    """New ids of one stream of events: the log's own, or a delegate's."""

    count: int = 0
    new_ids: dict[int, int] = field(default_factory=dict)
    nested: "dict[int, _Numbering]" = field(default_factory=dict)


class _Repair:
    """State of a repair: the damages so far, and the new id of each old one."""

    def __init__(self, path: Path) -> None:
        self.lines = 0
        self.damages: list[Damage] = []
        self._path = path
        self._numbering = _Numbering()
        self._digests: dict[int, bytes] = {}

    def take(self, number: int, line: bytes | None) -> Iterator[bytes]:
        """Yield the line as it is kept, or nothing if it is damaged.

        None: the line was too long to read.
        """
        self.lines = number
        if line is None:
            self._add_damage(f"left out: longer than {MAX_LINE_BYTES:,} bytes")
            return
        # A crash of the machine may leave zero bytes, and an editor a byte order mark at the start.
        event_json = line.strip(b"\0").removeprefix(BOM_UTF8).rstrip(b"\r\n")
        try:
            id = parse_line(event_json).id
        except LogTooNew as error:
            location = f"{self._path}, line {number}: {error.what}"
            raise LogTooNew(location, error.next_step) from error
        except LogError as error:
            self._add_damage(f"left out: {error.what}")
            return
        digest = hashlib.sha256(event_json).digest()
        if self._digests.get(id) == digest:
            self._add_damage(f"left out: event {id} is a duplicate of an earlier line")
            return
        self._digests[id] = digest
        if event_json + b"\n" != line.replace(b"\r\n", b"\n"):
            self._add_damage("kept, without what was wrong before or after the event")
        before = from_json(event_json)
        after = self._renumber(before, self._numbering)
        text = json.dumps(after, ensure_ascii=False, separators=(",", ":"))
        yield (event_json if after == before else text.encode()) + b"\n"

    def _renumber(self, data: JsonObject, numbering: _Numbering) -> JsonObject:
        """Return the event with its new id and with the new ids of the events that it refers to."""
        new = dict(data)
        for name in ("cause", "reply"):
            if new.get(name) is not None:
                new[name] = self._new_id(name, new[name], numbering)
        if new.get("action") is not None:
            new_id = self._new_id("action", new["action"], numbering)
            new["action"] = LOST_ID if new_id is None else new_id
        if new["kind"] == "delegate_event":
            new_id = self._new_id("delegate", new["delegate"], numbering)
            new["delegate"] = LOST_ID if new_id is None else new_id
            nested = numbering.nested.setdefault(new["delegate"], _Numbering())
            new["event"] = self._renumber(new["event"], nested)
        if new["kind"] == "condensation":
            for name in ("forgotten", "masked"):
                ids = [self._new_id(name, old, numbering) for old in new.get(name, ())]
                new |= {name: [id for id in ids if id is not None]} if name in new else {}
        old_id = int(new.get("id", LOST_ID))
        if old_id != numbering.count:
            self._add_damage(f"kept as event {numbering.count}: its id was {old_id}")
        new["id"] = numbering.new_ids[old_id] = numbering.count
        numbering.count += 1
        return new

    def _new_id(self, name: str, old_id: int | str, numbering: _Numbering) -> int | None:
        new_id = numbering.new_ids.get(int(old_id))
        if new_id is None and int(old_id) != LOST_ID:
            self._add_damage(f"its {name} was event {old_id}, which is lost")
        return new_id

    def _add_damage(self, what: str) -> None:
        self.damages.append(Damage(self.lines, what))


def _bounded_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield every line with its number, including an incomplete last line.

    A line that is longer than MAX_LINE_BYTES is replaced by None.
    """
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        if line.endswith(b"\n") or len(line) < MAX_LINE_BYTES:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES)
        yield number, None


def _write(output: Path, lines: list[bytes]) -> None:
    try:
        with open(output, "xb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError as error:
        raise LogError(f"{output} already exists", "remove it, or give --output FILE") from error
    except OSError as error:
        raise LogError(f"{output} can't be written: {error.strerror}", "give --output") from error
