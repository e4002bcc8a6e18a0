"""Reads a file as text that can be written back as exactly the same bytes.

Encoding, byte order mark, line ends and mode are preserved. Only LF ends a line, as in git and in
editors; form feed and U+2028 are part of a line. For a text that is not found in a file, the most
similar lines tell the agent how it differs.
"""

import difflib
import hashlib
import itertools
import json
import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from .wire import ActionFailed

MAX_FILE_BYTES: Final = 32 * 1024 * 1024
"""Size in bytes of the largest file that can be viewed or edited."""

MAX_DIFF_BYTES: Final = 10_000
"""Maximum size of a hunk in bytes."""

MAX_SHOWN_LINE_BYTES: Final = 400
"""Maximum size of one line of a hunk or around an edit, in bytes as in the event log.

It keeps the event of a one-line edit small even if the lines around it are very long.
"""

CONTEXT_LINES: Final = 3
"""Number of unchanged lines around a hunk."""

BOM: Final = "\ufeff"
UTF16_MARKS: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""Byte order marks of UTF-16, which some Windows programs write."""


class TextFile(NamedTuple):
    """The content of a file. `text` has the file's own line ends but no byte order mark."""

    text: str
    encoding: str
    mark: bool

    @property
    def newline(self) -> str:
        """The line end that most lines have."""
        crlf = self.text.count("\r\n")
        return "\r\n" if crlf * 2 > self.text.count("\n") else "\n"

    def encoded(self, text: str) -> bytes:
        """Return `text` in this file's encoding.

        Raises ActionFailed if the encoding lacks one of its characters.
        """
        try:
            return ((BOM if self.mark else "") + text).encode(self.encoding)
        except UnicodeEncodeError as error:
            raise ActionFailed(
                f"The text has a character that {self.encoding}, the file's encoding, "
                f"can't hold: {text[error.start : error.end]!r}."
            ) from error


def decode_text(data: bytes) -> TextFile:
    """Decode bytes as UTF-8, as UTF-16 if they begin with its mark, or else as Latin-1.

    Each of them gives the same bytes back.
    """
    for mark, encoding in UTF16_MARKS.items():
        if data.startswith(mark):
            with suppress(UnicodeDecodeError):
                return TextFile(data.decode(encoding).removeprefix(BOM), encoding, True)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return TextFile(data.decode("latin-1"), "latin-1", False)
    return TextFile(text.removeprefix(BOM), "utf-8", text.startswith(BOM))


def is_binary(data: bytes) -> bool:
    """Return True if the first 8000 bytes contain a NUL, which is git's rule.

    UTF-16 with a byte order mark counts as text.
    """
    return b"\0" in data[:8000] and not decode_text(data).mark


def read_bytes(path: str) -> bytes:
    """Return the content of a regular file.

    Raises ActionFailed if there is none, if it is over MAX_FILE_BYTES, or if it can't be read.
    """
    try:
        # O_NONBLOCK: opening a named pipe would wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ActionFailed(f"{path} is not a regular file.")
            if status.st_size > MAX_FILE_BYTES:
                raise ActionFailed(
                    f"{path} has {status.st_size} bytes, over the {MAX_FILE_BYTES} that can be "
                    "opened here. Use the shell (sed -n, grep) on it."
                )
            return file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise ActionFailed(f"There is no file {path}.") from error
    except OSError as error:
        raise ActionFailed(f"{path} can't be read: {error.strerror}.") from error


def write_bytes(path: str, data: bytes, before: bytes | None) -> None:
    """Write a file in place, so that its mode, owner and hard links stay.

    before: content of the existing file, which is restored if the disk is full; None creates a new
        file.
    Raises ActionFailed.
    """
    try:
        if before is None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb" if before is None else "r+b", buffering=0) as file:
            try:
                _write_all(file.fileno(), data)
            except OSError:
                _write_all(file.fileno(), before or b"")
                raise
    except FileExistsError as error:
        raise ActionFailed(f"{path} already exists: change it with str_replace.") from error
    except OSError as error:
        raise ActionFailed(f"{path} can't be written: {error.strerror}.") from error


def _write_all(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]
    os.ftruncate(descriptor, len(data))


def content_digest(data: bytes | None) -> str:
    """Return the SHA-256 of the content in hex; "" for a file that does not exist."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def numbered(lines: list[str], first: int) -> str:
    """Return the lines with their numbers, formatted as by `cat -n`."""
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def shorten_line(line: str) -> str:
    """Return the first MAX_SHOWN_LINE_BYTES bytes of a line and how many characters follow."""
    start = line[:MAX_SHOWN_LINE_BYTES]
    while (size := _logged_size(start)) > MAX_SHOWN_LINE_BYTES:
        start = start[: len(start) * MAX_SHOWN_LINE_BYTES // size]
    left_out = len(line) - len(start)
    return f"{start}[... {left_out} more characters]" if left_out else line


def _logged_size(text: str) -> int:
    """Return the size in bytes of a text in JSON, where a control character takes six."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def split_lines(text: str) -> list[str]:
    """Return the lines without their line ends."""
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    if lines[-1] == "":
        lines.pop()
    return lines


def line_at(text: str, position: int) -> int:
    """Return the number of the line, from 1, that contains a position of the text."""
    return text.count("\n", 0, position) + 1


def find_positions(text: str, sought: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each occurrence of `sought`, including overlapping ones.

    LF in `sought` also matches CR LF.
    """
    if "\r\n" not in text:
        return _plain_positions(text, sought)
    sought_lines = sought.replace("\r\n", "\n").split("\n")
    pattern = re.compile(r"\r?\n".join(map(re.escape, sought_lines)))
    spans = []
    match = pattern.search(text)
    while match:
        spans.append(match.span())
        match = pattern.search(text, match.start() + 1)
    return spans


def _plain_positions(text: str, sought: str) -> list[tuple[int, int]]:
    spans = []
    start = text.find(sought)
    while start >= 0:
        spans.append((start, start + len(sought)))
        start = text.find(sought, start + 1)
    return spans


class EditHunk(NamedTuple):
    """The range of lines in which two texts differ."""

    diff: str  # unified diff with shortened lines, truncated to MAX_DIFF_BYTES
    first: int  # first changed line in the new text, from 1
    last: int  # last changed line in the new text; first - 1 if lines were only removed


def hunk(old: str | None, new: str | None, name: str) -> EditHunk:
    """Return the difference as a single unified hunk.

    None stands for a file that does not exist.
    """
    before, after = _lines_with_ends(old or ""), _lines_with_ends(new or "")
    start = _count_equal(before, after)
    end = _count_equal(reversed(before[start:]), reversed(after[start:]))
    first = max(0, start - CONTEXT_LINES)
    last_old = min(len(before), len(before) - end + CONTEXT_LINES)
    last_new = last_old + len(after) - len(before)
    body = [
        *(_diff_line(" ", line) for line in before[first:start]),
        *(_diff_line("-", line) for line in before[start : len(before) - end]),
        *(_diff_line("+", line) for line in after[start : len(after) - end]),
        *(_diff_line(" ", line) for line in before[len(before) - end : last_old]),
    ]
    head = (
        f"--- {'/dev/null' if old is None else 'a/' + name}\n"
        f"+++ {'/dev/null' if new is None else 'b/' + name}\n"
        f"@@ -{_hunk_range(first, last_old - first)} +{_hunk_range(first, last_new - first)} @@\n"
    )
    diff = _cut(head + "".join(body)) if before != after else ""
    return EditHunk(diff, start + 1, len(after) - end)


def _count_equal(a: Iterable[str], b: Iterable[str]) -> int:
    """Return the number of lines that are the same at the beginning of both."""
    pairs = zip(a, b, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _lines_with_ends(text: str) -> list[str]:
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _diff_line(sign: str, line: str) -> str:
    shortened = sign + shorten_line(line.removesuffix("\n")) + "\n"
    return shortened if line.endswith("\n") else f"{shortened}\\ No newline at end of file\n"


def _hunk_range(top: int, count: int) -> str:
    return f"{top + 1 if count else top},{count}"


def _cut(diff: str) -> str:
    """Truncate the diff in the middle to at most MAX_DIFF_BYTES bytes of UTF-8."""
    data = diff.encode("utf-8", "surrogatepass")
    if len(data) <= MAX_DIFF_BYTES:
        return diff
    half = MAX_DIFF_BYTES // 2 - 40
    left_out = len(data) - 2 * half
    head = data[:half].decode("utf-8", "ignore")
    tail = data[-half:].decode("utf-8", "ignore")
    return f"{head}\n[... {left_out} bytes left out ...]\n{tail}"


MAX_COMPARED_LINES: Final = 4_000
"""Number of lines that are compared by similarity. Equal lines are searched in the whole file."""

MAX_SHOWN_LINES: Final = 12
MAX_LINE_CHARACTERS: Final = 300
MIN_SIMILARITY: Final = 0.6


def describe_nearest(lines: list[str], sought: str) -> str:
    """Return a sentence with the most similar lines, or one that says there are none."""
    sought_lines = [sought_line.removesuffix("\r") for sought_line in sought.split("\n")]
    if len(sought_lines) > 1 and not sought_lines[-1]:
        sought_lines.pop()
    offset = next(
        (index for index, sought_line in enumerate(sought_lines) if sought_line.strip()), 0
    )
    key = sought_lines[offset].strip()
    starts = [index - offset for index, line in enumerate(lines) if line.strip() == key]
    starts = starts or [index - offset for index in _similar_lines(lines[:MAX_COMPARED_LINES], key)]
    starts = [max(0, index) for index in starts[:50]]
    if not starts:
        return " No lines in it are similar: view the file."
    best = max(starts, key=lambda at: _similarity(lines[at : at + len(sought_lines)], sought_lines))
    candidates = lines[best : best + len(sought_lines)]
    # The most frequent reason, which is hard to see in the lines themselves: indentation.
    differs_in_space = [line.split() for line in candidates] == [
        sought_line.split() for sought_line in sought_lines
    ]
    hint = " They differ in white space only." if differs_in_space else ""
    shown = numbered(
        [line[:MAX_LINE_CHARACTERS] for line in candidates[:MAX_SHOWN_LINES]], best + 1
    )
    return f" The nearest lines are:\n{shown}\n{hint}".rstrip()


def _similar_lines(lines: list[str], key: str) -> list[int]:
    """Return the indexes of at most ten lines that are similar to `key`, the most similar first."""
    matcher = difflib.SequenceMatcher(None, "", key[:MAX_LINE_CHARACTERS])
    scores = []
    for index, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:MAX_LINE_CHARACTERS])
        may_be_similar = (
            matcher.real_quick_ratio() > MIN_SIMILARITY and matcher.quick_ratio() > MIN_SIMILARITY
        )
        if may_be_similar and (score := matcher.ratio()) > MIN_SIMILARITY:
            scores.append((score, -index))
    return [-index for _, index in sorted(scores, reverse=True)[:10]]


def _similarity(lines: list[str], sought_lines: list[str]) -> float:
    return difflib.SequenceMatcher(
        None, "\n".join(lines)[:2000], "\n".join(sought_lines)[:2000]
    ).ratio()
