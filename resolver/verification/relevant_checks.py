"""Selects the checks that matter for a change, by the globs in their `paths`."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from resolver.models.verification import ProjectCheck

_ANY_FOLDERS = "**"


def relevant_checks(
    checks: Sequence[ProjectCheck], changed_files: Sequence[str]
) -> tuple[ProjectCheck, ...]:
    """Return the checks without `paths`, and those with a glob that matches a changed file."""
    return tuple(
        check
        for check in checks
        if not check.paths
        or any(matches_glob(path, glob) for path in changed_files for glob in check.paths)
    )


def matches_glob(path: str, glob: str) -> bool:
    """Return True if the glob matches the whole path.

    `**` stands for any number of folders, `*`, `?` and `[...]` for characters other than a slash. A
    glob that names a folder (`src/`) matches everything in it. The time is proportional to the
    product of the numbers of folders.
    """
    parts = path.split("/")
    wanted = (f"{glob}{_ANY_FOLDERS}" if glob.endswith("/") else glob).split("/")
    # reached[n]: the globs so far match the first n parts of the path.
    reached = [True, *(False for _ in parts)]
    for pattern in wanted:
        if pattern == _ANY_FOLDERS:
            first = reached.index(True) if True in reached else len(reached)
            reached = [number >= first for number in range(len(reached))]
        else:
            matched = (
                before and fnmatchcase(part, pattern)
                for before, part in zip(reached, parts, strict=False)
            )
            reached = [False, *matched]
    return reached[-1]
