"""A file as text that goes back to exactly the same bytes: encoding, mark, line ends, mode.

Lines end at LF alone, as git and editors count them; form feed and U+2028 are inside a line.
"""

import hashlib
import json
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from .failure import ActionFailed

MAX_FILE: Final = 32 * 1024 * 1024
"""Largest file, in bytes, that is viewed or edited as a whole."""

MAX_DIFF: Final = 10_000
"""Bytes of a hunk."""

MAX_SHOWN_LINE: Final = 400
"""Bytes, as the log has them, of one line of a hunk or beside an edit, so that an edit of one line
makes small events whatever the lines beside it are."""

CONTEXT: Final = 3
BOM: Final = "\ufeff"
WIDE: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""How files begin that some Windows programs write."""


@dataclass(frozen=True)
class TextFile:
    """Content of a file. `text` has no byte order mark but its own line ends."""

    text: str
    encoding: str
    mark: bool

    @property
    def newline(self) -> str:
        """The line end that most lines have."""
        crlf = self.text.count("\r\n")
        return "\r\n" if crlf * 2 > self.text.count("\n") else "\n"

    def encoded(self, text: str) -> bytes:
        """`text` in this file's encoding. Raises ActionFailed for what it can't hold."""
        try:
            return ((BOM if self.mark else "") + text).encode(self.encoding)
        except UnicodeEncodeError as error:
            raise ActionFailed(
                f"The text has a character that {self.encoding}, the file's encoding, "
                f"can't hold: {text[error.start : error.end]!r}."
            ) from error


def decoded(data: bytes) -> TextFile:
    """UTF-8, UTF-16 with its mark, or Latin-1 where it is neither: all give the same bytes back."""
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
    """Git's rule, a NUL near the beginning, but for UTF-16 that says so."""
    return b"\0" in data[:8000] and not decoded(data).mark


def read_bytes(path: str) -> bytes:
    """A regular file of bounded size. Raises ActionFailed."""
    try:
        # Not to wait for the other end of a named pipe.
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
    """Write in place, so that mode, owner and hard links stay. before: content of an existing
    file, put back when the disk is full; None makes a new file. Raises ActionFailed."""
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
    """SHA-256 in hex; "" for a file that does not exist."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def numbered(lines: list[str], first: int) -> str:
    """Lines with their numbers, as `cat -n` shows them."""
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def shorten_line(line: str) -> str:
    """The line's beginning of MAX_SHOWN_LINE bytes, and how much more there is."""
    start = line[:MAX_SHOWN_LINE]
    while (size := _logged_size(start)) > MAX_SHOWN_LINE:
        start = start[: len(start) * MAX_SHOWN_LINE // size]
    left_out = len(line) - len(start)
    return f"{start}[... {left_out} more characters]" if left_out else line


def _logged_size(text: str) -> int:
    """Bytes of a text in JSON, where a control character has six."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def split_lines(text: str) -> list[str]:
    """The lines without their ends."""
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    if lines[-1] == "":
        lines.pop()
    return lines


def line_at(text: str, position: int) -> int:
    """Number of the line, from 1, that a position of the text is in."""
    return text.count("\n", 0, position) + 1


def positions(text: str, wanted: str) -> list[tuple[int, int]]:
    """Where `wanted` is in `text`, overlaps too; its LF also stands for CR LF."""
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
    """The one stretch of lines in which two texts differ."""

    diff: str  # unified, its lines shortened and all of it cut to MAX_DIFF
    first: int  # first changed line in the new text, from 1
    last: int  # last changed line in the new text; first - 1 when lines were only removed


def hunk(old: str | None, new: str | None, name: str) -> EditHunk:
    """The difference as one unified hunk. None is a file that does not exist."""
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
    """Characters that both begin with. By halves, because slices compare fast."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _same_end(a: str, b: str, start: int) -> int:
    """Characters of the whole lines that both end with, after `start`."""
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
    """Where the CONTEXT lines before a line's beginning start."""
    for _ in range(CONTEXT):
        position = text.rfind("\n", 0, max(0, position - 1)) + 1
    return position


def _lines_ahead(text: str, position: int) -> int:
    """Where the CONTEXT lines from a line's beginning end."""
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
    """At most MAX_DIFF bytes of UTF-8, cut in the middle."""
    data = diff.encode("utf-8", "surrogatepass")
    if len(data) <= MAX_DIFF:
        return diff
    half = MAX_DIFF // 2 - 40
    left_out = len(data) - 2 * half
    head = data[:half].decode("utf-8", "ignore")
    tail = data[-half:].decode("utf-8", "ignore")
    return f"{head}\n[... {left_out} bytes left out ...]\n{tail}"
