"""Matches the paths of a repository with globs, in time linear in the length of a path.

A glob and a path are compared name by name: `**` stands for any number of names, and in every other
name `*`, `?` and `[...]` have the meaning that they have in `fnmatch`.
"""

import fnmatch
import re
from collections.abc import Sequence
from functools import lru_cache

ANY_NAMES = "**"

PathPattern = tuple[re.Pattern[str] | None, ...]
"""The pattern of each name of a glob; None for `**`."""


@lru_cache(maxsize=1024)
def compile_path_pattern(names: tuple[str, ...]) -> PathPattern:
    """Return the pattern of a glob that consists of these names."""
    # `fnmatch` puts what is between two stars into an atomic group, so that a name is matched
    # without backtracking.
    return tuple(
        None if name == ANY_NAMES else re.compile(fnmatch.translate(name)) for name in names
    )


def matches_path(pattern: PathPattern, names: Sequence[str]) -> bool:
    """Return True if the pattern matches the whole path that consists of these names."""
    # `reached` has the numbers of names that the pattern up to here can match: all alternatives
    # are followed at once, so that several `**` need no backtracking.
    reached = {0}
    for name_pattern in pattern:
        if name_pattern is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {n + 1 for n in reached if n < len(names) and name_pattern.match(names[n])}
        if not reached:
            return False
    return len(names) in reached


MAX_ALTERNATIVES = 64
"""Maximum number of globs that the braces of one stand for."""

_BRACES = re.compile(r"\{([^{}]*)\}")


def matches_glob(path: str, glob: str) -> bool:
    """Return True if the glob matches the path (from the repository's root, no leading slash).

    `*`, `?` and `[ab]` match within one folder, `**` matches any number of folders, and `{a,b}`
    either. A glob without a slash matches names in any folder, one with a trailing slash everything
    in the folder. The time is at most proportional to the product of both lengths.
    """
    names = path.split("/")
    return any(matches_path(pattern, names) for pattern in _patterns(glob.strip()))


@lru_cache(maxsize=1024)
def _patterns(glob: str) -> tuple[PathPattern, ...]:
    globs = [glob]
    while len(globs) < MAX_ALTERNATIVES and (braces := _BRACES.search(globs[0])):
        start, end = globs[0][: braces.start()], globs[0][braces.end() :]
        globs = [*globs[1:], *(f"{start}{part}{end}" for part in braces[1].split(","))]
    return tuple(compile_path_pattern(tuple(_rooted(one).split("/"))) for one in globs)


def _rooted(glob: str) -> str:
    glob = glob.removeprefix("./")
    glob += ANY_NAMES if glob.endswith("/") else ""
    return glob.removeprefix("/") if "/" in glob else f"{ANY_NAMES}/{glob}"
