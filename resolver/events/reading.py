"""Reads the lines of a log from any source and validates them."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from resolver.errors import LogError
from resolver.events.log import LONGEST_LINE, Event, parse_line

NOT_A_LOG = "check the path; `resolver trace LOG --repair` saves what can be saved of a damaged log"


def read_log(path: Path) -> Iterator[Event]:
    """Yield all complete events of a log file, checking that their numbers have no gap.

    An incomplete last line is left out: it is what remains if the writer is killed during a write.
    Raises LogError, which names the line and the problem.
    """
    with open_log_file(path) as file:
        empty = True
        for event in check_lines(str(path), "line", whole_lines(path, file)):
            empty = False
            yield event
    if empty:
        raise LogError(f"{path} has no event in it", NOT_A_LOG)


def open_log_file(path: Path) -> BinaryIO:
    """Open the file for reading. Anything but a regular file is refused before it can block."""
    try:
        # Opening a FIFO without a writer would block: fifo(7).
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except IsADirectoryError as error:
        raise LogError(f"{path} is a folder, not an event log", NOT_A_LOG) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise LogError(f"{path} can't be read: {reason}", "check the path") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise LogError(f"{path} is not a regular file", "save the log into a file first")
    return file


def whole_lines(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines that end with a newline.

    Raises LogError for a line of LONGEST_LINE or more.
    """
    number = 0
    while line := _next_line(path, file, number):
        if line.endswith(b"\n"):
            yield line
        elif len(line) >= LONGEST_LINE:
            raise LogError(
                f"{path}, line {number + 1}: longer than {LONGEST_LINE:,} bytes", NOT_A_LOG
            )
        number += 1


def _next_line(path: Path, file: BinaryIO, number: int) -> bytes:
    try:
        return file.readline(LONGEST_LINE)
    except OSError as error:
        raise LogError(f"{path}, line {number + 1} can't be read: {error.strerror}") from error


def check_lines(origin: str, unit: str, lines: Iterable[bytes | str]) -> Iterator[Event]:
    """Yield the events of `lines`, checking that they are numbered 0, 1, 2, ... without gap.

    origin, unit: used in error messages, such as "FILE, line 3" or "DATABASE, row 3".
    Raises LogError.
    """
    for number, line in enumerate(lines):
        try:
            event = parse_line(line)
        except LogError as error:
            where = f"{origin}, {unit} {number + 1}: {error.what}"
            raise type(error)(where, error.next_step or NOT_A_LOG) from error
        if event.id != number:
            raise LogError(
                f"{origin}, {unit} {number + 1}: the event's id is {event.id}, not {number}",
                f"events are numbered 0, 1, 2, ... without gap; {NOT_A_LOG}",
            )
        yield event
