"""Reports which files of the repository an action has changed: the difference of the working tree.

It runs inside the sandbox, with the standard library and the toolbox's git. Like the export of the
change, it uses a private git directory and an index of its own, never the agent's `.git`.
"""

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from . import setup_files
from .spool import readable

MAX_PATHS: Final = 50
"""Maximum number of changed paths that are named for one action."""

MAX_CHARACTERS: Final = 10_000
"""Maximum number of characters of all named paths together."""

_STATUS: Final = [
    "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames",
    "--ignore-submodules=all",
]  # fmt: skip
_Signature = tuple[int, int, int, int] | None
"""Mode, size, time of the last change and inode of a file; None if it is gone."""


class TreeChanges(NamedTuple):
    """The changes of the working tree.

    paths: relative to the root and sorted; the first ones if there are many.
    total: number of all changed paths.
    differing: number of paths that differ from the base now.
    repositories: new folders that are git repositories of their own.
    """

    paths: list[str]
    total: int
    differing: int
    repositories: list[str]


class TreeComparison:
    """Compares the working tree with its state at the last call.

    A file counts as changed if it differs from the base before or after, and was written, created
    or deleted in between. Ignored and generated files don't count. A tracked file that was written
    with the content of the base does not count either.

    root: absolute path of the repository.
    run: runs git on the private git directory, with an index of its own that is a copy of the
        checkout's.
    """

    def __init__(self, root: str, run: setup_files.Run) -> None:
        self._root = os.fsencode(root)
        self._run = run
        self._tracked = self._names(["ls-files", "-z"])
        self._known = self._differing()

    def take(self) -> TreeChanges:
        """Return what has changed since the last call. Raises ActionFailed if git fails."""
        known, self._known = self._known, self._differing()
        changed = sorted(
            path
            for path in known.keys() | self._known.keys()
            if (path in known) != (path in self._known) or known[path] != self._known[path]
        )
        # Untracked files are listed one by one: git names only a repository of its own as a folder.
        inner = [p for p in changed if p.endswith(b"/") and p in self._known and p not in known]
        return TreeChanges(_bounded(changed), len(changed), len(self._known), _bounded(inner))

    def _names(self, args: Sequence[str]) -> list[bytes]:
        return self._run(args).split(b"\0")[:-1]

    def _differing(self) -> dict[bytes, _Signature]:
        """Return the paths that differ from the base, with their signatures.

        Git updates the index, so that it reads a file that was written with the same content once.
        """
        # The first column compares the index with HEAD, which says nothing here.
        rows = [row for row in self._names(_STATUS) if row[1:2] != b" "]
        new_files = [row[3:] for row in rows if row[:2] == b"??"]
        patterns = setup_files.find_patterns(new_files, lambda: self._tracked)
        changed = [row[3:] for row in rows if row[:2] != b"??"]
        new = (path for path in new_files if not setup_files.is_generated(path, patterns))
        return {path: self._signature(path) for path in (*changed, *new)}

    def _signature(self, path: bytes) -> _Signature:
        try:
            found = os.lstat(os.path.join(self._root, path))
        except OSError:
            return None
        return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino


def _bounded(paths: Sequence[bytes]) -> list[str]:
    """Return the first paths, within MAX_PATHS and MAX_CHARACTERS."""
    shown: list[str] = []
    length = 0
    for path in paths[:MAX_PATHS]:
        name = readable(os.fsdecode(path))
        length += len(name)
        if length > MAX_CHARACTERS:
            break
        shown.append(name)
    return shown
