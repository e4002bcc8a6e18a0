"""Functions for viewing and searching files in the agent's IPython session.

They print what they find and change nothing. The agent sees the docstrings of the functions in
`__all__`.
"""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .textfile import split_lines

__all__ = [
    "find_file",
    "goto_line",
    "open_file",
    "scroll_down",
    "scroll_up",
    "search_dir",
    "search_file",
]

WINDOW_LINES: Final = 100
"""Number of lines that are shown at once by default."""

MAX_MATCHES: Final = 100
"""Maximum number of lines or files that a search prints."""

MAX_SEARCHED_BYTES: Final = 5_000_000
"""Size in bytes above which a file is not read."""

SKIPPED_FOLDERS: Final = frozenset({".git", "node_modules", "__pycache__", ".tox", ".venv"})
"""Names of folders that are not searched."""


@dataclass
class _Window:
    path: str | None = None
    line: int = 1
    height: int = WINDOW_LINES


_window = _Window()


def print_line(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def open_file(path: str, line_number: int = 1, context_lines: int = WINDOW_LINES) -> None:
    """Show `context_lines` lines of a file around `line_number`; scrolling continues there."""
    if not os.path.isfile(path):
        print_line(f"No such file: {path}")
        return
    _window.path = os.path.abspath(path)
    _window.line = line_number
    _window.height = min(max(1, context_lines), 1000)
    _show()


def goto_line(line_number: int) -> None:
    """Move the window to a line of the open file."""
    _window.line = line_number
    _show()


def scroll_down() -> None:
    """Show the lines after the window."""
    _window.line += _window.height
    _show()


def scroll_up() -> None:
    """Show the lines before the window."""
    _window.line -= _window.height
    _show()


def search_file(search_term: str, file_path: str | None = None) -> None:
    """Print the lines of a file (default: the open one) that contain the text."""
    path = file_path or _window.path
    if not path or not os.path.isfile(path):
        print_line(f"No such file: {path}" if path else "No file is open.")
        return
    _print_matches(search_term, [path])


def search_dir(search_term: str, dir_path: str = ".") -> None:
    """Print the lines below a folder that contain the text; skips .git, binaries, huge files."""
    _print_matches(search_term, _files(dir_path))


def find_file(file_name: str, dir_path: str = ".") -> None:
    """Print the paths below a folder whose file name contains the text; `*` and `?` are wild."""
    pattern = re.escape(file_name).replace(r"\*", ".*").replace(r"\?", ".")
    matches = [path for path in _files(dir_path) if re.search(pattern, os.path.basename(path))]
    for path in matches[:MAX_MATCHES]:
        print_line(path)
    if not matches:
        print_line(f"No file named like {file_name!r} in {dir_path}")
    if len(matches) > MAX_MATCHES:
        print_line(f"[... {len(matches) - MAX_MATCHES} more files]")


def _show() -> None:
    if not _window.path:
        print_line("No file is open: open_file(path) opens one.")
        return
    lines = _lines(_window.path)
    _window.line = min(max(1, _window.line), max(1, len(lines)))
    last_start = max(1, len(lines) - _window.height + 1)
    first = min(max(1, _window.line - _window.height // 2), last_start)
    last = min(len(lines), first + _window.height - 1)
    print_line(f"[File: {_window.path} ({len(lines)} lines)]")
    if first > 1:
        print_line(f"({first - 1} lines above)")
    for number in range(first, last + 1):
        print_line(f"{number}|{lines[number - 1]}")
    if last < len(lines):
        print_line(f"({len(lines) - last} lines below)")


def _print_matches(term: str, paths: "Iterator[str] | list[str]") -> None:
    shown = 0
    for path in paths:
        for number, line in enumerate(_lines(path), 1):
            if term in line:
                shown += 1
                if shown > MAX_MATCHES:
                    print_line(f"[More than {MAX_MATCHES} matches: search for something rarer.]")
                    return
                print_line(f"{path}:{number}: {line.strip()[:300]}")
    if not shown:
        print_line(f"No match for {term!r}")


def _files(folder: str) -> Iterator[str]:
    for current, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            yield os.path.join(current, name)


def _lines(path: str) -> list[str]:
    """Return the lines of a file; none if it is binary, too large or unreadable."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MAX_SEARCHED_BYTES:
            return []
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return []
    return [] if b"\0" in data[:8192] else split_lines(data.decode("utf-8", "replace"))
