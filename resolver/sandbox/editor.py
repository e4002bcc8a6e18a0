"""The agent's editor: view, create, str_replace, insert, append, undo_edit.

It changes files below the repository's root only; files in the scratch folder and /tmp may be
viewed. Line ends, encoding, byte order mark, mode and a missing final newline are preserved.

Whether an edit breaks the syntax of a file is checked where nothing has to be executed for it:
Python, JSON, TOML, and YAML if its parser is installed.
"""

import ast
import importlib
import importlib.util
import json
import os
import tomllib
import warnings
from collections.abc import Callable
from typing import Final

from .textfile import (
    TextFile,
    content_digest,
    decode_text,
    describe_nearest,
    find_positions,
    hunk,
    is_binary,
    line_at,
    numbered,
    read_bytes,
    shorten_line,
    split_lines,
    write_bytes,
)
from .viewing import MAX_LINE_CHARACTERS, as_images, describe_binary, list_folder, show_lines
from .wire import ActionFailed, EditResult, ViewResult

MAX_CHECKED_CHARACTERS: Final = 1_000_000
"""Length in characters of the longest text that is parsed after an edit."""


def find_syntax_error(name: str, before: str | None, after: str) -> str | None:
    """Return the syntax error in `after` as one line, or None.

    None also means that `before` had an error already, or that the file is too long or of a type
    that is not checked.

    name: file name, whose extension decides the syntax.
    before: None for a file that did not exist.
    """
    check = _CHECKS.get(name.rpartition(".")[2].lower())
    if check is None or len(after) > MAX_CHECKED_CHARACTERS:
        return None
    message = _check_error(check, after)
    if message is None or (before is not None and _check_error(check, before) is not None):
        return None
    return message


def _check_error(check: Callable[[str], None], text: str) -> str | None:
    """Return the error that a check raises for the text, as one line; None if it raises none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(text)
    except SyntaxError as error:
        return f"line {error.lineno or 1}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error).replace("\n", " ") or type(error).__name__
    return None


def _python(text: str) -> None:
    ast.parse(text)


def _json(text: str) -> None:
    if text.strip():
        json.loads(text)


def _toml(text: str) -> None:
    tomllib.loads(text.replace("\r\n", "\n"))


def _yaml(text: str) -> None:
    if importlib.util.find_spec("yaml") is None:
        return
    yaml = importlib.import_module("yaml")
    try:
        for _ in yaml.parse(text):
            pass
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


_CHECKS: Final[dict[str, Callable[[str], None]]] = {
    "py": _python,
    "pyi": _python,
    "json": _json,
    "toml": _toml,
    "yaml": _yaml,
    "yml": _yaml,
}


MAX_UNDO_EDITS: Final = 50
"""Number of edits of one file that can be undone."""

MAX_UNDO_BYTES: Final = 64 * 1024 * 1024
"""Total size in bytes of the old contents kept for undo, over all files."""

CONTEXT_LINES: Final = 4
"""Number of lines shown before and after an edit."""

MAX_LISTED: Final = 20
"""Maximum number of line numbers listed for an ambiguous `old_str`."""

MAX_SHOWN_LINES: Final = 60
"""Maximum number of lines shown of an edit that was refused."""


class Editor:
    """A session of edits. Every failure is an ActionFailed with a hint for the agent.

    strict: refuse an edit after which the file can't be parsed any more.
    """

    def __init__(self, root: str, scratch: str, *, strict: bool = False) -> None:
        self._strict = strict
        self._root = os.path.realpath(root)
        self._readable = [self._root, os.path.realpath(scratch), os.path.realpath("/tmp")]
        # Per file: its content before an edit (None: no file) and its hash after it.
        self._undo: dict[str, list[tuple[bytes | None, str]]] = {}

    def view(self, path: str, view_range: tuple[int, int] | None) -> ViewResult:
        """Return a file with line numbers, an image, or the entries of a folder two levels deep."""
        real_path = self.readable_path(path)
        if os.path.isdir(real_path):
            if view_range:
                raise ActionFailed(f"{path} is a folder: view_range is for files.")
            return ViewResult(output=list_folder(real_path), images=[])
        data = self.read(path)
        if is_binary(data):
            return ViewResult(output=describe_binary(path, data), images=as_images(data))
        shown = show_lines(path, split_lines(decode_text(data).text), view_range)
        return ViewResult(output=shown, images=[])

    def create(self, path: str, file_text: str) -> EditResult:
        """Create a new file and its parent folders."""
        real_path = self.writable_path(path)
        if os.path.lexists(real_path):
            raise ActionFailed(f"{path} already exists: change it with str_replace.")
        data = TextFile("", "utf-8", False).encoded(file_text)
        return self._change(real_path, None, data, "created")

    def str_replace(self, path: str, old_str: str, new_str: str) -> EditResult:
        """Replace the only occurrence of `old_str`."""
        real_path, before, file = self._open(path)
        if not old_str:
            raise ActionFailed("old_str is empty: use insert to add text.")
        if old_str == new_str:
            raise ActionFailed("old_str and new_str are the same: nothing would change.")
        matches = find_positions(file.text, old_str)
        if not matches:
            raise ActionFailed(
                f"old_str is not in {path}.{describe_nearest(split_lines(file.text), old_str)}"
            )
        if len(matches) > 1:
            lines = [str(line_at(file.text, start)) for start, _ in matches[:MAX_LISTED]]
            ellipsis = ", ..." if len(matches) > MAX_LISTED else ""
            raise ActionFailed(
                f"old_str is {len(matches)} times in {path}, "
                f"at lines {', '.join(lines)}{ellipsis}. "
                "Add lines around it until it is there once."
            )
        start, end = matches[0]
        replaced = file.text[start:end]
        newline = file.newline
        if "\n" in replaced:
            newline = "\r\n" if "\r\n" in replaced else "\n"
        text = file.text[:start] + _with_newlines(new_str, newline) + file.text[end:]
        return self._change(real_path, before, file.encoded(text), "edited")

    def insert(self, path: str, insert_line: int, new_str: str) -> EditResult:
        """Insert whole lines after line `insert_line`; 0 is the top of the file."""
        real_path, before, file = self._open(path)
        return self._insert(path, real_path, before, file, insert_line, new_str)

    def append(self, path: str, new_str: str) -> EditResult:
        """Insert whole lines after the last one."""
        real_path, before, file = self._open(path)
        return self._insert(path, real_path, before, file, len(split_lines(file.text)), new_str)

    def _insert(
        self,
        path: str,
        real_path: str,
        before: bytes,
        file: TextFile,
        insert_line: int,
        new_str: str,
    ) -> EditResult:
        count = len(split_lines(file.text))
        if not 0 <= insert_line <= count:
            raise ActionFailed(
                f"insert_line {insert_line} is not in {path}: it has {count} lines (0 is the top)."
            )
        if not new_str:
            raise ActionFailed("new_str is empty: nothing would change.")
        parts = file.text.split("\n")
        head = "\n".join(parts[:insert_line]) + ("\n" if insert_line else "")
        if insert_line == count and not file.text.endswith("\n"):
            head = file.text
        tail = file.text[len(head) :]
        added = _with_newlines(new_str, file.newline)
        if head and not head.endswith("\n"):
            # The last line had no newline: it gets one, and the new last line has none.
            text = head + file.newline + added
        else:
            text = head + added + ("" if added.endswith("\n") else file.newline) + tail
        return self._change(real_path, before, file.encoded(text), "edited")

    def undo_edit(self, path: str) -> EditResult:
        """Undo the last edit of a file, if nothing else has changed it since then."""
        real_path = self.writable_path(path)
        edits = self._undo.get(real_path)
        if not edits:
            raise ActionFailed(f"No edit of {path} is left to undo.")
        current = read_bytes(real_path) if os.path.lexists(real_path) else None
        before, hash_after = edits[-1]
        if content_digest(current) != hash_after:
            raise ActionFailed(
                f"{path} was changed by something else since that edit: undo would lose it. "
                "Use str_replace."
            )
        edits.pop()
        if before is None:
            try:
                os.unlink(real_path)
            except OSError as error:
                raise ActionFailed(f"{path} can't be removed: {error.strerror}.") from error
        else:
            write_bytes(real_path, before, current)
        return self._result(real_path, current, before, "as it was before the last edit")

    def read(self, path: str) -> bytes:
        """Return the content of a file that a model names; raise ActionFailed if it may not."""
        return read_bytes(self.readable_path(path))

    def readable_path(self, path: str) -> str:
        """Return the real path of what a model names; raise ActionFailed if it may not read it."""
        return self._resolve_path(path, self._readable)

    def writable_path(self, path: str) -> str:
        """Return the real path of what a model names; raise ActionFailed if it may not write it."""
        return self._resolve_path(path, [self._root])

    def _resolve_path(self, path: str, allowed: list[str]) -> str:
        """Return the real path; raise ActionFailed unless it is in one of the allowed folders."""
        if not path or "\0" in path:
            raise ActionFailed("The path is empty or has a NUL character.")
        try:
            real_path = os.path.realpath(os.path.join(self._root, path))
        except OSError as error:
            raise ActionFailed(f"{path} can't be followed: {error.strerror}.") from error
        if any(os.path.commonpath([real_path, folder]) == folder for folder in allowed):
            return real_path
        target_note = "" if real_path == os.path.normpath(path) else f" (it leads to {real_path})"
        raise ActionFailed(
            f"{path}{target_note} is outside of {self._root}: the editor stays inside."
        )

    def _open(self, path: str) -> tuple[str, bytes, TextFile]:
        real_path = self.writable_path(path)
        if os.path.isdir(real_path):
            raise ActionFailed(f"{path} is a folder.")
        data = read_bytes(real_path)
        if is_binary(data):
            raise ActionFailed(f"{path} is a binary file: the editor changes text only.")
        return real_path, data, decode_text(data)

    def _change(
        self, real_path: str, before: bytes | None, data: bytes, description: str
    ) -> EditResult:
        """Write the new content, remember the old one for undo, and return the result.

        description: what happened to the file, for the agent.
        """
        syntax_error = self._syntax_error_after(real_path, before, data)
        write_bytes(real_path, data, before)
        edits = self._undo.setdefault(real_path, [])
        edits.append((before, content_digest(data)))
        del edits[:-MAX_UNDO_EDITS]
        self._limit_undo()
        result = self._result(real_path, before, data, description)
        if syntax_error:
            result["output"] += f"\n[After this edit the file can't be parsed: {syntax_error}]"
        return result

    def _syntax_error_after(self, real_path: str, before: bytes | None, data: bytes) -> str | None:
        """Return the syntax error that the edit would cause, or None.

        In strict mode, raise ActionFailed with the lines as they would be and as they are.
        """
        name = os.path.relpath(real_path, self._root)
        old, new = None if before is None else decode_text(before).text, decode_text(data).text
        message = find_syntax_error(name, old, new)
        if message is None or not self._strict:
            return message
        change = hunk(old, new, name)
        new_lines = split_lines(new)
        first, last = (
            max(1, change.first - CONTEXT_LINES),
            min(len(new_lines), change.last + CONTEXT_LINES),
        )
        old_lines = split_lines(old or "")
        old_last = min(len(old_lines), last - len(new_lines) + len(old_lines))
        raise ActionFailed(
            f"The edit was not made: {name} could not be parsed after it: {message}\n"
            f"It would have looked like this:\n{_cut_lines(new_lines, first, last)}\n"
            f"The lines now:\n{_cut_lines(old_lines, first, old_last) or '(nothing)'}\n"
            "Nothing has changed. Correct the edit and try again."
        )

    def _limit_undo(self) -> None:
        """Discard the oldest contents of the files that use the most, down to MAX_UNDO_BYTES."""
        total = sum(_size(edits) for edits in self._undo.values())
        while total > MAX_UNDO_BYTES:
            largest = max(
                self._undo.values(), key=lambda edits: sum(len(e[0] or b"") for e in edits)
            )
            total -= len(largest.pop(0)[0] or b"")

    def _result(
        self, real_path: str, before: bytes | None, after: bytes | None, description: str
    ) -> EditResult:
        """Return the result of an edit, with the changed lines and those around them."""
        name = os.path.relpath(real_path, self._root)
        old = None if before is None else decode_text(before).text
        new = None if after is None else decode_text(after).text
        change = hunk(old, new, name)
        if new is None:
            output = f"{name} is {description}: it does not exist."
        else:
            lines = split_lines(new)
            first, last = (
                max(1, change.first - CONTEXT_LINES),
                min(len(lines), change.last + CONTEXT_LINES),
            )
            lines[first - 1 : last] = map(shorten_line, lines[first - 1 : last])
            shown = show_lines(name, lines, (first, last))
            output = (
                f"{name} is {description}. {shown}"
                if before is not None
                else f"{name} is {description}."
            )
        return EditResult(
            path=name,
            output=output,
            diff=change.diff,
            old_hash=content_digest(before),
            new_hash=content_digest(after),
        )


def _cut_lines(lines: list[str], first: int, last: int) -> str:
    shown = numbered(
        [line[:MAX_LINE_CHARACTERS] for line in lines[first - 1 : last][:MAX_SHOWN_LINES]], first
    )
    return shown + ("\n[...]" if last - first >= MAX_SHOWN_LINES else "")


def _size(edits: list[tuple[bytes | None, str]]) -> int:
    return sum(len(before or b"") for before, _ in edits)


def _with_newlines(text: str, newline: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", newline) if newline != "\n" else text
