"""The files of a commit, as the discovery of checks reads them: names first, contents on request.

Nothing is checked out and nothing is executed. Symbolic links and submodules are left out.
"""

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from posixpath import basename, dirname
from typing import Any

from resolver.git.git import HostGit
from resolver.git.tree import GITLINK, SYMLINK, decode_path, read_blobs, read_tree

MAX_FILE = 500_000
"""Maximum number of bytes of a file that is read; a larger file counts as empty."""

MAX_FILES = 200_000
"""Maximum number of paths of a tree; the others are left out."""

ReadMany = Callable[[Iterable[str]], Mapping[str, bytes]]
"""Return the contents of those of the files that exist and have at most MAX_FILE bytes."""


@dataclass(frozen=True)
class ProjectTree:
    """The regular files of a tree. paths: sorted, relative to the repository's root."""

    paths: tuple[str, ...]
    read_many: ReadMany

    @classmethod
    def from_commit(cls, git: HostGit, commit: str) -> "ProjectTree":
        """Return the tree of a commit, or of a tree object, in the host's clone."""
        blobs = {
            decode_path(entry.path): entry.id
            for entry in read_tree(git, commit)
            if entry.mode not in {SYMLINK, GITLINK}
        }
        # A name with control characters is in no command that Resolver writes.
        paths = tuple(sorted(path for path in blobs if path.isprintable())[:MAX_FILES])

        def read_many(wanted: Iterable[str]) -> Mapping[str, bytes]:
            ids = {path: blobs[path] for path in wanted if path in blobs}
            contents = dict(read_blobs(git, ids.values(), MAX_FILE))
            return {path: contents[blob] for path, blob in ids.items() if blob in contents}

        return cls(paths, read_many)

    @cached_property
    def names(self) -> Mapping[str, frozenset[str]]:
        """The names of the files in each folder that has any; "" is the root."""
        found: dict[str, set[str]] = {}
        for path in self.paths:
            found.setdefault(dirname(path), set()).add(basename(path))
        return {folder: frozenset(names) for folder, names in found.items()}

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None if there is none or it is too large."""
        return self.read_many((path,)).get(path)

    def text(self, path: str) -> str:
        """Return the text of a file, "" if there is none or it is too large."""
        return (self.read(path) or b"").decode(errors="replace")

    def json(self, path: str) -> dict[str, Any]:
        """Return the object in a JSON file, {} if there is none."""
        try:
            value = json.loads(self.text(path))
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def toml(self, path: str) -> dict[str, Any]:
        """Return the tables of a TOML file, {} if it can't be parsed."""
        try:
            return tomllib.loads(self.text(path))
        except (ValueError, RecursionError):
            return {}


def join_path(folder: str, name: str) -> str:
    """Return the path of a file in a folder; "" is the root."""
    return f"{folder}/{name}" if folder else name


def paths_below(folder: str, paths: Iterable[str]) -> list[str]:
    """Return the paths in a folder and its subfolders; "" is the root."""
    return [path for path in paths if path.startswith(f"{folder}/")] if folder else list(paths)


def table(data: Any, *names: str) -> dict[str, Any]:
    """Return the mapping under these keys of nested mappings, {} if there is none."""
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}
