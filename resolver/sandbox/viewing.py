"""Formats files and folders for the agent."""

import base64
import os
import stat
from typing import Final

from .textfile import numbered
from .wire import MAX_TEXT, ActionFailed

MAX_LINE_CHARACTERS: Final = 2_000
"""Maximum number of characters shown of one line."""

MAX_ENTRIES: Final = 500
"""Maximum number of entries listed of a folder."""

SHOWN_FORMATS: Final = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}
IMAGE_FORMATS: Final = {
    b"\x89PNG\r\n\x1a\n": "PNG image",
    b"\xff\xd8\xff": "JPEG image",
    b"GIF8": "GIF image",
    b"RIFF": "RIFF file (WebP image, WAV or AVI)",
    b"BM": "BMP image",
}


MAX_IMAGE_BYTES: Final = 2 * 1024 * 1024
"""Size in bytes of the largest image that is shown as one."""


def as_images(data: bytes) -> list[str]:
    """Return the image as a data URL, if models accept its format and it is not too large."""
    kind = next((kind for magic, kind in SHOWN_FORMATS.items() if data.startswith(magic)), None)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        kind = "webp"
    if kind is None or len(data) > MAX_IMAGE_BYTES:
        return []
    return [f"data:image/{kind};base64,{base64.b64encode(data).decode()}"]


def show_lines(name: str, lines: list[str], view_range: tuple[int, int] | None) -> str:
    """Return the numbered lines of a range, truncated if they are too many.

    view_range: first and last line, from 1; -1 as the last one means the end of the file.
    Raises ActionFailed if the range is not in the file.
    """
    count = len(lines)
    first, last = view_range or (1, -1)
    last = count if last == -1 else min(last, count)
    if not count:
        return f"{name} is empty."
    if not 1 <= first <= count or last < first:
        raise ActionFailed(
            f"view_range {list(view_range or ())} does not fit: {name} has {count} lines."
        )
    shown: list[str] = []
    size = 0
    for line in lines[first - 1 : last]:
        if len(line) > MAX_LINE_CHARACTERS:
            left_out = len(line) - MAX_LINE_CHARACTERS
            line = f"{line[:MAX_LINE_CHARACTERS]}[... {left_out} more characters]"
        size += len(line) + 8
        if size > MAX_TEXT:
            break
        shown.append(line)
    end = first + len(shown) - 1
    heading = f"Lines {first}-{end} of {count}:" if view_range or end < count else f"{count} lines:"
    more_note = f"\n[Lines {end + 1}-{last}: give them as view_range.]" if end < last else ""
    return f"{heading}\n{numbered(shown, first)}{more_note}"


def list_folder(folder: str) -> str:
    """Return the names two levels deep, without hidden ones; folders end with "/"."""
    shown, hidden = [], 0
    for path, name, depth in _entries(folder):
        if name.startswith("."):
            hidden += 1
        else:
            shown.append("  " * depth + name + ("/" if os.path.isdir(path) else ""))
    more_note = f"\n[{len(shown) - MAX_ENTRIES} more entries]" if len(shown) > MAX_ENTRIES else ""
    note = f"\n[{hidden} hidden entries are not shown]" if hidden else ""
    return f"{folder}/\n" + "\n".join(shown[:MAX_ENTRIES]) + more_note + note


def _entries(folder: str, depth: int = 1) -> list[tuple[str, str, int]]:
    """Return (path, name, depth) of the entries, two levels deep."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        if depth == 1:
            raise ActionFailed(f"{folder} can't be read: {error.strerror}.") from error
        return []
    entries = []
    for name in names:
        path = os.path.join(folder, name)
        entries.append((path, name, depth))
        if depth < 2 and not name.startswith(".") and _is_own_folder(path):
            entries.extend(_entries(path, depth + 1))
    return entries


def _is_own_folder(path: str) -> bool:
    """Return True for a folder, and False for a link to one, which may lead anywhere."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def describe_binary(name: str, data: bytes) -> str:
    """Return one sentence to show instead of bytes that a model can't read."""
    kind = next(
        (name_of_kind for magic, name_of_kind in IMAGE_FORMATS.items() if data.startswith(magic)),
        "binary file",
    )
    size = ""
    if kind == "PNG image" and len(data) >= 24:
        width, height = (int.from_bytes(data[offset : offset + 4], "big") for offset in (16, 20))
        size = f" of {width}x{height} pixels"
    return f"{name} is a {kind}{size}, {len(data)} bytes; it is not shown as text."
