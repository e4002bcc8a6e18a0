"""Renders the diff of a pull request as text with line numbers and a length limit."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from resolver.git.pull_request import FilePatch, hunk_heads
from resolver.models.pull_request import DiffFile

MOST_OF_FILE = 30_000
"""Maximum number of characters of one file's diff."""

MOST = 120_000
"""Maximum number of characters of all diffs together. Further files are only named."""

LONGEST_LINE = 1_000
"""Maximum number of characters of a line."""


def numbered_diff(patches: Sequence[FilePatch], show: Callable[[str], str] = str) -> str:
    """Return the diff, file by file, with a number before each line.

    An added or unchanged line has its number in the new file, a deleted line the one in the old
    file. What exceeds a limit is replaced by a note. show: applied to the text of each line; the
    limits apply to its result.
    """
    parts = []
    room = MOST
    for patch in patches:
        head = _head(patch.file)
        body = _body(patch, show)
        if len(body) > room:
            body = "[not shown, for length]"
        room -= len(body)
        parts.append(f"{head}\n{body}")
        if room < 0 or len(parts) >= 300:
            break
    if len(parts) < len(patches):
        parts.append(f"[{len(patches) - len(parts)} more files are not shown]")
    return "\n\n".join(parts)


def _head(file: DiffFile) -> str:
    moved = f" (was {file.old_path})" if file.old_path else ""
    count = "" if file.additions is None else f", +{file.additions} -{file.deletions}"
    return f"=== {file.path}{moved}: {file.status.replace('_', ' ')}{count}"


def _body(patch: FilePatch, show: Callable[[str], str]) -> str:
    if not patch.hunks:
        return "[binary content]" if patch.file.additions is None else "[no lines to show]"
    lines: list[str] = []
    raw = patch.hunks.rstrip(b"\n").split(b"\n")
    room = MOST_OF_FILE
    for line in _numbered(raw, show):
        room -= len(line) + 1
        if room < 0:
            left = len(raw) - len(lines)
            lines.append(f"[{left} more lines of this file's diff are not shown]")
            break
        lines.append(line)
    return "\n".join(lines)


def _numbered(hunks: Iterable[bytes], show: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines of the hunks with their numbers."""
    old = new = 0
    for raw in hunks:
        text = raw.decode("utf-8", "replace").removesuffix("\r")
        if len(text) > LONGEST_LINE:
            text = f"{text[:LONGEST_LINE]}[{len(text) - LONGEST_LINE} more characters]"
        text = show(text)
        sign, rest = text[:1], text[1:]
        match sign:
            case "@":
                found = next(hunk_heads(raw))
                old, new = int(found[1]), int(found[3])
                yield text
            case "-":
                yield f"{old:>6} -{rest}"
                old += 1
            case "+":
                yield f"{new:>6} +{rest}"
                new += 1
            case "\\":
                yield f"       {text}"
            case _:
                yield f"{new:>6}  {rest}"
                old, new = old + 1, new + 1
