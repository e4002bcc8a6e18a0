"""Saves what can be saved of a damaged log file, into a new one. The damaged one is only read."""

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
from resolver.events.log import LONGEST_LINE, parse_line
from resolver.events.reading import open_log_file
from resolver.models.run import JsonObject

LOST = -1
"""What a field that must name an event names when that event is lost."""

NOTED = 1_000
"""Damages that are told one by one."""


@dataclass(frozen=True)
class Damage:
    """What was wrong with a line, and what became of it."""

    line: int
    what: str


@dataclass(frozen=True)
class RepairedLog:
    """lines: how many the damaged log has. kept: how many the new one has.
    damages: what was wrong, the first ones. more: how many more there are.
    """

    lines: int
    kept: int
    damages: tuple[Damage, ...]
    more: int


def repair_log(path: Path, output: Path) -> RepairedLog:
    """Write every line of `path` that is an event into `output`, numbered anew without gap.

    What refers to an event by its id (its cause, its reply, what was forgotten) refers to the same
    event afterwards, or to none when that one is lost. A log without damage is not written.

    Raises LogError when `output` is there already, can't be written, or when there is nothing to
    save; LogTooNew when the log is of a version that can't be understood.
    """
    with open_log_file(path) as file:
        repair = _Repair(path)
        lines = [line for numbered in _bounded_lines(file) for line in repair.take(*numbered)]
    if not lines:
        raise LogError(f"{path} has no line that is an event", "nothing of it can be saved")
    if repair.damages:
        _write(output, lines)
    told = tuple(repair.damages[:NOTED])
    return RepairedLog(repair.lines, len(lines), told, len(repair.damages) - len(told))


@dataclass
class _Numbering:
    """New ids of one stream of events: the log's own, or a delegate's."""

    count: int = 0
    new_ids: dict[int, int] = field(default_factory=dict)
    nested: "dict[int, _Numbering]" = field(default_factory=dict)


class _Repair:
    """What was seen of the log so far: what was wrong, and which id became which."""

    def __init__(self, path: Path) -> None:
        self.lines = 0
        self.damages: list[Damage] = []
        self._path = path
        self._numbering = _Numbering()
        self._kept: dict[int, bytes] = {}

    def take(self, number: int, line: bytes | None) -> Iterator[bytes]:
        """The line as it is kept; nothing when it is damaged. None: it was too long to be read."""
        self.lines = number
        if line is None:
            self._note(f"left out: longer than {LONGEST_LINE:,} bytes")
            return
        # A crash of the machine may leave zero bytes, an editor a mark at the file's start.
        whole = line.strip(b"\0").removeprefix(BOM_UTF8).rstrip(b"\r\n")
        try:
            id = parse_line(whole).id
        except LogTooNew as error:
            where = f"{self._path}, line {number}: {error.what}"
            raise LogTooNew(where, error.next_step) from error
        except LogError as error:
            self._note(f"left out: {error.what}")
            return
        digest = hashlib.sha256(whole).digest()
        if self._kept.get(id) == digest:
            self._note(f"left out: event {id} is there already, and is the same")
            return
        self._kept[id] = digest
        if whole + b"\n" != line.replace(b"\r\n", b"\n"):
            self._note("kept, without what was wrong before or after the event")
        before = from_json(whole)
        after = self._renumbered(before, self._numbering)
        text = json.dumps(after, ensure_ascii=False, separators=(",", ":"))
        yield (whole if after == before else text.encode()) + b"\n"

    def _renumbered(self, data: JsonObject, numbering: _Numbering) -> JsonObject:
        """The event with its new id, and the new ids of the events that it names."""
        new = dict(data)
        for name in ("cause", "reply"):
            if new.get(name) is not None:
                new[name] = self._new_id(name, new[name], numbering)
        if new.get("action") is not None:
            found = self._new_id("action", new["action"], numbering)
            new["action"] = LOST if found is None else found
        if new["kind"] == "delegate_event":
            found = self._new_id("delegate", new["delegate"], numbering)
            new["delegate"] = LOST if found is None else found
            nested = numbering.nested.setdefault(new["delegate"], _Numbering())
            new["event"] = self._renumbered(new["event"], nested)
        if new["kind"] == "condensation":
            for name in ("forgotten", "masked"):
                ids = [self._new_id(name, old, numbering) for old in new.get(name, ())]
                new |= {name: [id for id in ids if id is not None]} if name in new else {}
        old_id = int(new.get("id", LOST))
        if old_id != numbering.count:
            self._note(f"kept as event {numbering.count}: its id was {old_id}")
        new["id"] = numbering.new_ids[old_id] = numbering.count
        numbering.count += 1
        return new

    def _new_id(self, name: str, old_id: int | str, numbering: _Numbering) -> int | None:
        found = numbering.new_ids.get(int(old_id))
        if found is None and int(old_id) != LOST:
            self._note(f"its {name} was event {old_id}, which is lost")
        return found

    def _note(self, what: str) -> None:
        self.damages.append(Damage(self.lines, what))


def _bounded_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Every line with its number, the last one as well when it has no end; None in place of one
    that is longer than a line may be."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if line.endswith(b"\n") or len(line) < LONGEST_LINE:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE)
        yield number, None


def _write(output: Path, lines: list[bytes]) -> None:
    try:
        with open(output, "xb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError as error:
        raise LogError(f"{output} is there already", "remove it, or give --output FILE") from error
    except OSError as error:
        raise LogError(f"{output} can't be written: {error.strerror}", "give --output") from error
