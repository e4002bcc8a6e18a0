"""Functions for changing files in the agent's IPython session.

They use the editor in strict mode: an edit after which a file can't be parsed any more is refused
and shown next to the current lines. The agent sees the docstrings of the functions in `__all__`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from .editor import Editor
from .file_functions import print_line
from .wire import ActionFailed, EditResult

__all__ = ["append_file", "create_file", "edit_file_by_replace", "insert_content_at_line"]


@dataclass
class _Session:
    editor: Editor | None = None


_session = _Session()


def begin(root: str, scratch: str) -> None:
    """Create the editor of this session, which changes files below `root` only."""
    _session.editor = Editor(root, scratch, strict=True)


def create_file(path: str, content: str = "") -> None:
    """Make a new file, with the folders above it."""
    _report(lambda editor: editor.create(path, content))


def edit_file_by_replace(path: str, to_replace: str, new_content: str) -> None:
    """Replace the only place in a file where `to_replace` is."""
    _report(lambda editor: editor.str_replace(path, to_replace, new_content))


def insert_content_at_line(path: str, line_number: int, content: str) -> None:
    """Put whole lines before line `line_number`; the first line is 1."""
    _report(lambda editor: editor.insert(path, line_number - 1, content))


def append_file(path: str, content: str) -> None:
    """Put whole lines after the last line of a file."""
    _report(lambda editor: editor.append(path, content))


def _report(edit: Callable[[Editor], EditResult]) -> None:
    if _session.editor is None:
        raise RuntimeError("no session has begun")
    try:
        print_line(edit(_session.editor)["output"])
    except ActionFailed as failure:
        print_line(str(failure))
