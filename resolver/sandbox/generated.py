"""Finds the new files of a working tree that are caches or build output, and never source.

Only names that tools write and nobody commits are listed. `build`, `dist` and `target` are not:
repositories keep sources in folders with these names. New binary files that are not listed stay in
the change.
"""

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

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
