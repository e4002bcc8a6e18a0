"""Reads a file as text that can be written back as exactly the same bytes.

Encoding, byte order mark, line ends and mode are preserved. Only LF ends a line, as in git and in
editors; form feed and U+2028 are part of a line. For a text that is not found in a file, the most
similar lines tell the agent how it differs.
"""

import difflib
import hashlib
import json
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from .wire import ActionFailed

MAX_FILE: Final = 32 * 1024 * 1024
"""Size in bytes of the largest file that can be viewed or edited."""

MAX_DIFF: Final = 10_000
"""Maximum size of a hunk in bytes."""

MAX_SHOWN_LINE: Final = 400
"""Maximum size of one line of a hunk or around an edit, in bytes as in the event log.

It keeps the event of a one-line edit small even if the lines around it are very long.
"""

CONTEXT: Final = 3
"""Number of unchanged lines around a hunk."""

BOM: Final = "\ufeff"
WIDE: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""Byte order marks of UTF-16, which some Windows programs write."""


@dataclass(frozen=True)
class TextFile:
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


def decoded(data: bytes) -> TextFile:
    """Decode bytes as UTF-8, as UTF-16 if they begin with its mark, or else as Latin-1.

    Each of them gives the same bytes back.
    """
    for mark, encoding in WIDE.items():
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
    return b"\0" in data[:8000] and not decoded(data).mark


def read_bytes(path: str) -> bytes:
    """Return the content of a regular file.

    Raises ActionFailed if there is none, if it is larger than MAX_FILE, or if it can't be read.
    """
    try:
        # O_NONBLOCK: opening a named pipe would wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise ActionFailed(f"{path} is not a regular file.")
            if found.st_size > MAX_FILE:
                raise ActionFailed(
                    f"{path} has {found.st_size} bytes, over the {MAX_FILE} that can be opened "
                    "here. Use the shell (sed -n, grep) on it."
                )
            return file.read(MAX_FILE + 1)
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
        raise ActionFailed(f"{path} is there already: change it with str_replace.") from error
    except OSError as error:
        raise ActionFailed(f"{path} can't be written: {error.strerror}.") from error


def _write_all(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.ftruncate(descriptor, len(data))


def content_digest(data: bytes | None) -> str:
    """Return the SHA-256 of the content in hex; "" for a file that does not exist."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def numbered(lines: list[str], first: int) -> str:
    """Return the lines with their numbers, formatted as by `cat -n`."""
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def shorten_line(line: str) -> str:
    """Return the first MAX_SHOWN_LINE bytes of a line and how many characters follow."""
    start = line[:MAX_SHOWN_LINE]
    while (size := _logged_size(start)) > MAX_SHOWN_LINE:
        start = start[: len(start) * MAX_SHOWN_LINE // size]
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


def positions(text: str, wanted: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each occurrence of `wanted`, including overlapping ones.

    LF in `wanted` also matches CR LF.
    """
    if "\r\n" not in text:
        return _plain_positions(text, wanted)
    pieces = wanted.replace("\r\n", "\n").split("\n")
    pattern = re.compile(r"\r?\n".join(map(re.escape, pieces)))
    found = []
    match = pattern.search(text)
    while match:
        found.append(match.span())
        match = pattern.search(text, match.start() + 1)
    return found


def _plain_positions(text: str, wanted: str) -> list[tuple[int, int]]:
    found = []
    start = text.find(wanted)
    while start >= 0:
        found.append((start, start + len(wanted)))
        start = text.find(wanted, start + 1)
    return found


@dataclass(frozen=True)
class EditHunk:
    """The range of lines in which two texts differ."""

    diff: str  # unified diff with shortened lines, truncated to MAX_DIFF
    first: int  # first changed line in the new text, from 1
    last: int  # last changed line in the new text; first - 1 if lines were only removed


def hunk(old: str | None, new: str | None, name: str) -> EditHunk:
    """Return the difference as a single unified hunk.

    None stands for a file that does not exist.
    """
    a, b = old or "", new or ""
    start = a.rfind("\n", 0, _same_start(a, b)) + 1
    end = _same_end(a, b, start)
    above = a.count("\n", 0, start)
    before = _kept_ends(a[_lines_back(a, start) : start])
    after = _kept_ends(a[len(a) - end : _lines_ahead(a, len(a) - end)])
    removed, added = _kept_ends(a[start : len(a) - end]), _kept_ends(b[start : len(b) - end])
    body = [
        *(_diff_line(" ", line) for line in before),
        *(_diff_line("-", line) for line in removed),
        *(_diff_line("+", line) for line in added),
        *(_diff_line(" ", line) for line in after),
    ]
    top, around = above - len(before), len(before) + len(after)
    head = (
        f"--- {'/dev/null' if old is None else 'a/' + name}\n"
        f"+++ {'/dev/null' if new is None else 'b/' + name}\n"
        f"@@ -{_extent(top, around + len(removed))} +{_extent(top, around + len(added))} @@\n"
    )
    diff = _cut(head + "".join(body)) if a != b else ""
    return EditHunk(diff, above + 1, above + len(added))


def _same_start(a: str, b: str) -> int:
    """Return the length of the common prefix. Binary search, because comparing slices is fast."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _same_end(a: str, b: str, start: int) -> int:
    """Return the length of the whole lines that both texts end with, after `start`."""
    low, high = 0, min(len(a), len(b)) - start
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    if not all(len(text) - low == start or text[len(text) - low - 1] == "\n" for text in (a, b)):
        return len(a) - (a.find("\n", len(a) - low) + 1 or len(a))
    return low


def _lines_back(text: str, position: int) -> int:
    """Return where the CONTEXT lines before the beginning of a line start."""
    for _ in range(CONTEXT):
        position = text.rfind("\n", 0, max(0, position - 1)) + 1
    return position


def _lines_ahead(text: str, position: int) -> int:
    """Return where the CONTEXT lines from the beginning of a line end."""
    for _ in range(CONTEXT):
        position = text.find("\n", position) + 1 or len(text)
    return position


def _kept_ends(text: str) -> list[str]:
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _diff_line(sign: str, line: str) -> str:
    shown = sign + shorten_line(line.removesuffix("\n")) + "\n"
    return shown if line.endswith("\n") else f"{shown}\\ No newline at end of file\n"


def _extent(top: int, count: int) -> str:
    return f"{top + 1 if count else top},{count}"


def _cut(diff: str) -> str:
    """Truncate the diff in the middle to at most MAX_DIFF bytes of UTF-8."""
    data = diff.encode("utf-8", "surrogatepass")
    if len(data) <= MAX_DIFF:
        return diff
    half = MAX_DIFF // 2 - 40
    left_out = len(data) - 2 * half
    head = data[:half].decode("utf-8", "ignore")
    tail = data[-half:].decode("utf-8", "ignore")
    return f"{head}\n[... {left_out} bytes left out ...]\n{tail}"


MAX_COMPARED: Final = 4_000
"""Number of lines that are compared by similarity. Equal lines are searched in the whole file."""

MAX_SHOWN: Final = 12
MAX_WIDTH: Final = 300
LIKE_ENOUGH: Final = 0.6


def nearest(lines: list[str], wanted: str) -> str:
    """Return a sentence with the most similar lines, or one that says there are none."""
    pieces = [piece.removesuffix("\r") for piece in wanted.split("\n")]
    if len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    offset = next((at for at, piece in enumerate(pieces) if piece.strip()), 0)
    key = pieces[offset].strip()
    starts = [at - offset for at, line in enumerate(lines) if line.strip() == key]
    starts = starts or [at - offset for at in _alike(lines[:MAX_COMPARED], key)]
    starts = [max(0, at) for at in starts[:50]]
    if not starts:
        return " Nothing in it is like it: view the file."
    best = max(starts, key=lambda at: _likeness(lines[at : at + len(pieces)], pieces))
    found = lines[best : best + len(pieces)]
    # The most frequent reason, which is hard to see in the lines themselves: indentation.
    spaces = [line.split() for line in found] == [piece.split() for piece in pieces]
    why = " They differ in white space only." if spaces else ""
    shown = numbered([line[:MAX_WIDTH] for line in found[:MAX_SHOWN]], best + 1)
    return f" The nearest lines are:\n{shown}\n{why}".rstrip()


def _alike(lines: list[str], key: str) -> list[int]:
    """Return the indexes of at most ten lines that are similar to `key`, the most similar first."""
    matcher = difflib.SequenceMatcher(None, "", key[:MAX_WIDTH])
    scores = []
    for at, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:MAX_WIDTH])
        quick = matcher.real_quick_ratio() > LIKE_ENOUGH and matcher.quick_ratio() > LIKE_ENOUGH
        if quick and (score := matcher.ratio()) > LIKE_ENOUGH:
            scores.append((score, -at))
    return [-at for _, at in sorted(scores, reverse=True)[:10]]


def _likeness(found: list[str], pieces: list[str]) -> float:
    return difflib.SequenceMatcher(None, "\n".join(found)[:2000], "\n".join(pieces)[:2000]).ratio()
