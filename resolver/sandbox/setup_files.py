"""Finds the files of the repository's folder that are no part of a change: generated, from set-up.

New files that are caches or build output are found by their names. Only names that tools write and
nobody commits are listed. `build`, `dist` and `target` are not: repositories keep sources in
folders with these names. New binary files that are not listed stay in the change.

What the set-up of an environment leaves is kept out of the change, and it stays when a sandbox is
started from a saved environment. This runs inside the sandbox, with the standard library and the
toolbox's git.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from .wire import SettleResult

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

MOST_NAMED: Final = 100
"""Maximum number of files and folders that are listed as left out."""

_MARK = b"/pyvenv.cfg"


def find_patterns(new: Sequence[bytes], list_tracked: Callable[[], Sequence[bytes]]) -> list[bytes]:
    """Return gitignore patterns for the generated files among `new`.

    list_tracked: returns the paths that the base tracks. A pattern that matches one of them is not
        used, because this repository commits such files.
    """
    names = _components(new)
    found = [pattern for pattern in PATTERNS if _matches(pattern, names)]
    folders = {path[: -len(_MARK)] for path in new if path.endswith(_MARK)}
    environments = [f for f in sorted(folders) if f.rpartition(b"/")[2] in VIRTUAL_ENVIRONMENTS]
    if not found and not environments:
        return []
    tracked = list_tracked()
    known = _components(tracked)
    found = [pattern for pattern in found if not _matches(pattern, known)]
    for folder in environments:
        if not any(path.startswith(folder + b"/") for path in tracked) and b"\n" not in folder:
            found.append(b"/" + escape_glob(folder) + b"/")
    return found


def name_left_out(paths: Iterable[bytes], patterns: Sequence[bytes]) -> list[bytes]:
    """Return the generated files and folders that contain the paths, sorted.

    A folder ends with "/". There are at most MOST_NAMED.

    patterns: the patterns by which the paths were left out.
    """
    return sorted({_outermost(path, patterns) for path in paths})[:MOST_NAMED]


def escape_glob(name: bytes) -> bytes:
    """Return a gitignore pattern that matches `name` literally."""
    out = b"".join(b"\\" + c if c in b"\\*?[" else c for c in (bytes([b]) for b in name))
    return out[:-1] + b"\\ " if out.endswith(b" ") else out


def _components(paths: Sequence[bytes]) -> set[bytes]:
    return {name for path in paths for name in path.split(b"/")}


def _matches(pattern: bytes, names: set[bytes]) -> bool:
    if b"*" not in pattern:
        return pattern in names
    return any(fnmatchcase(name, pattern) for name in names)


def _outermost(path: bytes, patterns: Sequence[bytes]) -> bytes:
    parts = path.split(b"/")
    for number, name in enumerate(parts, 1):
        found = b"/".join(parts[:number])
        is_environment = b"/" + escape_glob(found) + b"/" in patterns
        if is_environment or any(fnmatchcase(name, pattern) for pattern in patterns):
            return found + (b"/" if number < len(parts) else b"")
    return path


MOST_RESTORED = 100
"""Maximum number of restored paths that are listed."""

_SETTLED = "resolver-settled"
"""Marker file in the private git directory: `settle` was the last operation on it."""

MOST_FILES = 5_000
"""Maximum number of untracked files that are excluded one by one.

Files that the agent later adds next to them are then part of the change. With more files, whole
folders are excluded.
"""

Run = Callable[[Sequence[str], Mapping[str, str]], bytes]
"""Runs git with arguments and variables, and returns its stdout."""


def settle_files(kept: str, root: str, commit: str, run: Run) -> SettleResult:
    """Undo changes to tracked files, and keep untracked files out of later changes.

    kept: the private git directory that changes are exported with.
    commit: the commit that is checked out.
    """
    place = {"GIT_DIR": kept, "GIT_WORK_TREE": root}
    changed = _names(run(["diff-index", "-z", "--name-only", commit], place))
    if changed:
        run(["read-tree", "--reset", "-u", commit], place)
        run(["checkout-index", "--all", "--force", "--quiet"], place)
    listing = ["ls-files", "-z", "--others", "--exclude-standard"]
    untracked = _names(run(listing, place))
    if len(untracked) > MOST_FILES:
        untracked = _names(run([*listing, "--directory"], place))
    patterns = [b"/" + escape_glob(name) for name in untracked if b"\n" not in name]
    keep_out(kept, patterns)
    keep_out(os.path.join(root, ".git"), patterns)
    with open(os.path.join(kept, _SETTLED), "wb"):
        pass
    return SettleResult(
        restored=[name.decode("utf-8", "replace") for name in changed[:MOST_RESTORED]],
        untracked=len(untracked),
    )


def is_settled(kept: str) -> bool:
    """Return True if `settle` was the last operation on this git directory."""
    return os.path.isfile(os.path.join(kept, _SETTLED))


def make_way(kept: str, root: str, run: Run) -> list[bytes]:
    """Remove the files and git directories of an earlier checkout from `root`.

    Untracked files that its set-up has created stay. Return the patterns that keep them out of
    changes; none if no set-up was saved.
    """
    if not is_settled(kept):
        return []
    place = {"GIT_DIR": kept, "GIT_WORK_TREE": root}
    for name in _names(run(["ls-files", "-z"], place)):
        path = os.path.join(os.fsencode(root), name)
        if os.path.islink(path) or os.path.isfile(path):
            os.unlink(path)
    patterns = _patterns(kept)
    for folder in (kept, os.path.join(root, ".git")):
        shutil.rmtree(folder, ignore_errors=True)
    return patterns


def keep_out(git_dir: str, patterns: Sequence[bytes]) -> None:
    """Add the patterns to those that a git directory ignores (info/exclude)."""
    folder = os.path.join(git_dir, "info")
    if not patterns or not os.path.isdir(git_dir) or os.path.islink(folder):
        return
    os.makedirs(folder, exist_ok=True)
    lines = dict.fromkeys([*_patterns(git_dir), *patterns])
    with open(os.path.join(folder, "exclude"), "wb") as file:
        file.writelines(line + b"\n" for line in lines)


def _patterns(kept: str) -> list[bytes]:
    try:
        with open(os.path.join(kept, "info", "exclude"), "rb") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def _names(output: bytes) -> list[bytes]:
    return [name for name in output.split(b"\0") if name]
