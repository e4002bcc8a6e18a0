"""Selects the checks that matter for a change, by the globs in their `paths`."""

from collections.abc import Sequence

from resolver.models.path_globs import ANY_NAMES, compile_path_pattern, matches_path
from resolver.models.verification import ProjectCheck


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
    wanted = f"{glob}{ANY_NAMES}" if glob.endswith("/") else glob
    return matches_path(compile_path_pattern(tuple(wanted.split("/"))), path.split("/"))
