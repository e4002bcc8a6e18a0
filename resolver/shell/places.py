"""Paths that are written, and which of them no repository holds."""

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

_OUTSIDE = ("/tmp", "/var/tmp", "/dev", "/proc", "/sys", "/run")  # noqa: S108 - nothing is made there


@dataclass(frozen=True)
class Written:
    """paths: that may have been written, as they are named. unknown: files were that are not named.
    whole: it is one step that, where it fails, has written nothing."""

    paths: tuple[str, ...] = ()
    unknown: bool = False
    whole: bool = False

    def __bool__(self) -> bool:
        return self.unknown or bool(self.paths)


def is_outside(path: str, root: str = "") -> bool:
    """Whether the repository does not hold the path: scratch files and devices. root: the
    repository's, where it is known."""
    plain = posixpath.normpath(path) if path.startswith("/") else ""
    if root and (plain == root or plain.startswith(f"{root}/")):
        return False
    return any(plain == each or plain.startswith(f"{each}/") for each in _OUTSIDE)


def of_paths(paths: Iterable[str], root: str = "", *, unknown: bool = False) -> Written:
    """Of these, what may be in a repository. A path that is put together as it is used is none that
    is known."""
    kept = [path for path in paths if path and not is_outside(path, root)]
    known = tuple(dict.fromkeys(each for each in kept if not _is_made(each)))
    return Written(known, unknown or len(known) < len(set(kept)))


def _is_made(path: str) -> bool:
    return "$" in path or "`" in path or path == "{}"
