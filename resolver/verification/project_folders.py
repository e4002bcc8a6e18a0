"""Finds the folders of a repository that hold a project of one kind."""

import re
from collections.abc import Collection, Iterable

from resolver.verification.project_tree import ProjectTree

MAX_PROJECTS = 8
"""Maximum number of projects of one kind."""

MAX_DEPTH = 3
"""Maximum depth of a folder with a project; 1 is a folder at the root."""

_NO_PROJECT = re.compile(
    r"(?:^|/)(?:\.[^/]*|docs?|examples?|samples?|fixtures?|tests?|spec|testdata|templates?|vendor|"
    r"third_party|node_modules|dist|build|target)(?:/|$)",
    re.IGNORECASE,
)
"""Matches folders whose projects are no part of the product."""


def project_folders(
    tree: ProjectTree, marks: Collection[str], *, fallback: bool = False
) -> tuple[str, ...]:
    """Return the outermost folders that hold a file with one of the names; "" is the root.

    fallback: return the root if there is no such folder.
    """
    if not tree.names.get("", frozenset()).isdisjoint(marks):
        return ("",)
    found: list[str] = []
    for folder in sorted(tree.names):
        if folder.count("/") >= MAX_DEPTH or tree.names[folder].isdisjoint(marks):
            continue
        is_inner = any(folder.startswith(f"{outer}/") for outer in found)
        if not is_inner and not _NO_PROJECT.search(folder):
            found.append(folder)
        if len(found) == MAX_PROJECTS:
            break
    return tuple(found) or (("",) if fallback else ())


def paths_below(folder: str, paths: Iterable[str]) -> list[str]:
    """Return the paths in a folder and its subfolders; "" is the root."""
    return [path for path in paths if path.startswith(f"{folder}/")] if folder else list(paths)
