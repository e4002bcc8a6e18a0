"""Finds the files of the repository's folder that are no part of a change: generated, from set-up.

New files that are caches or build output are found by their names. Only names that tools write and
nobody commits are listed. `build`, `dist` and `target` are not: repositories keep sources in
folders with these names. New binary files that are not listed stay in the change.

What the set-up of an environment leaves is kept out of the change, and it stays when a sandbox is
started from a saved environment. This runs inside the sandbox, with the standard library and the
toolbox's git.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from .wire import BaselineResult

PATTERNS: Final = (
    # Python: byte code, and the caches of test runners, type checkers, linters and builders
    b"__pycache__", b"*.pyc", b"*.pyo", b".pytest_cache", b".mypy_cache", b".ruff_cache",
    b".hypothesis", b".pytype", b".tox", b".nox", b"*.egg-info", b".eggs", b".ipynb_checkpoints",
    # coverage data; `.coveragerc` is source
    b".coverage", b".coverage.*", b"htmlcov", b".nyc_output",
    # JavaScript and PHP
    b"node_modules", b".eslintcache", b".stylelintcache", b".parcel-cache",
    b".phpunit.result.cache",
    # Gradle, Sass, desktops
    b".gradle", b".sass-cache", b".DS_Store",
)  # fmt: skip
"""Gitignore patterns for the name of a file or folder at any depth."""

VIRTUAL_ENVIRONMENTS: Final = frozenset({b".venv", b"venv"})
"""Names of folders that are left out if they contain a `pyvenv.cfg`."""

MAX_LISTED: Final = 100
"""Maximum number of files and folders that are listed as left out."""

_ENVIRONMENT_MARKER = b"/pyvenv.cfg"


def find_patterns(
    new_files: Sequence[bytes], list_tracked: Callable[[], Sequence[bytes]]
) -> list[bytes]:
    """Return gitignore patterns for the generated files among `new_files`.

    list_tracked: returns the paths that the base tracks. A pattern that matches one of them is not
        used, because this repository commits such files.
    """
    names = _components(new_files)
    patterns = [pattern for pattern in PATTERNS if _matches(pattern, names)]
    folders = {
        path[: -len(_ENVIRONMENT_MARKER)]
        for path in new_files
        if path.endswith(_ENVIRONMENT_MARKER)
    }
    environments = [
        environment
        for environment in sorted(folders)
        if environment.rpartition(b"/")[2] in VIRTUAL_ENVIRONMENTS
    ]
    if not patterns and not environments:
        return []
    tracked = list_tracked()
    tracked_names = _components(tracked)
    patterns = [pattern for pattern in patterns if not _matches(pattern, tracked_names)]
    for folder in environments:
        if not any(path.startswith(folder + b"/") for path in tracked) and b"\n" not in folder:
            patterns.append(b"/" + escape_glob(folder) + b"/")
    return patterns


def is_generated(path: bytes, patterns: Sequence[bytes]) -> bool:
    """Return True if one of the patterns, as `find_patterns` returns them, matches the path."""
    return _generated_depth(path, patterns) > 0


def name_left_out(paths: Iterable[bytes], patterns: Sequence[bytes]) -> list[bytes]:
    """Return the generated files and folders that contain the paths, sorted.

    A folder ends with "/". There are at most MAX_LISTED.

    patterns: the patterns by which the paths were left out.
    """
    return sorted({_outermost(path, patterns) for path in paths})[:MAX_LISTED]


def escape_glob(name: bytes) -> bytes:
    """Return a gitignore pattern that matches `name` literally."""
    escaped = re.sub(rb"[\\*?\[]", rb"\\\g<0>", name)
    return escaped[:-1] + b"\\ " if escaped.endswith(b" ") else escaped


def _components(paths: Sequence[bytes]) -> set[bytes]:
    return {name for path in paths for name in path.split(b"/")}


def _matches(pattern: bytes, names: set[bytes]) -> bool:
    if b"*" not in pattern:
        return pattern in names
    return any(fnmatchcase(name, pattern) for name in names)


def _outermost(path: bytes, patterns: Sequence[bytes]) -> bytes:
    parts = path.split(b"/")
    depth = _generated_depth(path, patterns) or len(parts)
    return b"/".join(parts[:depth]) + (b"/" if depth < len(parts) else b"")


def _generated_depth(path: bytes, patterns: Sequence[bytes]) -> int:
    """Return the number of components of the outermost generated file or folder on the path.

    Returns 0 if there is none. The work is linear in the length of the path: folders can be nested
    a thousand times, and each of them is looked up.
    """
    if not patterns:
        return 0
    # A pattern with a slash is that of a virtual environment, all others are for names.
    anchored = b"/" + escape_glob(path) + b"/"
    depths = [
        pattern.count(b"/") - 1
        for pattern in patterns
        if pattern.startswith(b"/") and anchored.startswith(pattern)
    ]
    names = [pattern for pattern in patterns if not pattern.startswith(b"/")]
    for depth, name in enumerate(path.split(b"/"), 1):
        if any(fnmatchcase(name, pattern) for pattern in names):
            return min([depth, *depths])
    return min(depths, default=0)


MAX_RESTORED_LISTED = 100
"""Maximum number of restored paths that are listed."""

_BASELINE_MARKER = "resolver-baseline"
"""Marker file in the private git directory: `set_baseline` was the last operation on it."""

MAX_EXCLUDED_FILES = 5_000
"""Maximum number of untracked files that are excluded one by one.

Files that the agent later adds next to them are then part of the change. With more files, whole
folders are excluded.
"""

Run = Callable[[Sequence[str]], bytes]
"""Runs git with arguments on the private git directory, and returns its stdout."""


def reset_to_baseline(git_dir: str, root: str, commit: str, run: Run) -> BaselineResult:
    """Undo changes to tracked files, and keep untracked files out of later changes.

    git_dir: the private git directory that changes are exported with.
    commit: the commit that is checked out.
    """
    changed = _names(run(["diff-index", "-z", "--name-only", commit]))
    if changed:
        run(["read-tree", "--reset", "-u", commit])
        run(["checkout-index", "--all", "--force", "--quiet"])
    listing = ["ls-files", "-z", "--others", "--exclude-standard"]
    untracked = _names(run(listing))
    if len(untracked) > MAX_EXCLUDED_FILES:
        untracked = _names(run([*listing, "--directory"]))
    patterns = [b"/" + escape_glob(name) for name in untracked if b"\n" not in name]
    exclude_from_change(git_dir, patterns)
    exclude_from_change(os.path.join(root, ".git"), patterns)
    with open(os.path.join(git_dir, _BASELINE_MARKER), "wb"):
        pass
    return BaselineResult(
        restored=[name.decode("utf-8", "replace") for name in changed[:MAX_RESTORED_LISTED]],
        untracked=len(untracked),
    )


def has_baseline(git_dir: str) -> bool:
    """Return True if `set_baseline` was the last operation on this git directory."""
    return os.path.isfile(os.path.join(git_dir, _BASELINE_MARKER))


def remove_checkout(git_dir: str, root: str, run: Run) -> list[bytes]:
    """Remove the files and git directories of an earlier checkout from `root`.

    Untracked files that its set-up has created stay. Return the patterns that keep them out of
    changes; none if no set-up was saved.
    """
    if not has_baseline(git_dir):
        return []
    for name in _names(run(["ls-files", "-z"])):
        path = os.path.join(os.fsencode(root), name)
        if os.path.islink(path) or os.path.isfile(path):
            os.unlink(path)
    patterns = _patterns(git_dir)
    for folder in (git_dir, os.path.join(root, ".git")):
        shutil.rmtree(folder, ignore_errors=True)
    return patterns


def exclude_from_change(git_dir: str, patterns: Sequence[bytes]) -> None:
    """Add the patterns to those that a git directory ignores (info/exclude)."""
    folder = os.path.join(git_dir, "info")
    if not patterns or not os.path.isdir(git_dir) or os.path.islink(folder):
        return
    os.makedirs(folder, exist_ok=True)
    lines = dict.fromkeys([*_patterns(git_dir), *patterns])
    with open(os.path.join(folder, "exclude"), "wb") as file:
        file.writelines(line + b"\n" for line in lines)


def _patterns(git_dir: str) -> list[bytes]:
    try:
        with open(os.path.join(git_dir, "info", "exclude"), "rb") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def _names(output: bytes) -> list[bytes]:
    return [name for name in output.split(b"\0") if name]
