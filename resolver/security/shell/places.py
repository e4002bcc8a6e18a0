"""Paths in commands: which of them no repository holds, and how people are shown the others."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_OUTSIDE = ("/tmp", "/var/tmp", "/dev", "/proc", "/sys", "/run")  # noqa: S108 - nothing is made there


@dataclass(frozen=True)
class WrittenPaths:
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


def of_paths(paths: Iterable[str], root: str = "", *, unknown: bool = False) -> WrittenPaths:
    """Of these, what may be in a repository. A path that is put together as it is used is none that
    is known."""
    kept = [path for path in paths if path and not is_outside(path, root)]
    known = tuple(dict.fromkeys(each for each in kept if not _is_made(each)))
    return WrittenPaths(known, unknown or len(known) < len(set(kept)))


def _is_made(path: str) -> bool:
    return "$" in path or "`" in path or path == "{}"


def relative_command(text: str, roots: Sequence[str]) -> str:
    """Return a command or a path as it reads from the repository's root: without the `cd` into it
    at the beginning, and with the paths below it relative.

    roots: the repository's paths in the sandboxes, which mean nothing to a reader. For people only:
    where the shell stood elsewhere, the result is not the same command.
    """
    for root in roots:
        plain = re.escape(root.rstrip("/"))
        if not plain:
            continue
        text = re.sub(rf"\A\s*cd\s+(['\"]?){plain}/?\1\s*(?:&&|;|\n)\s*(?=\S)", "", text)
        text = re.sub(rf"(?<![\w./-]){plain}/(?=[\w.*-])", "", text)
        text = re.sub(rf"(?<![\w./-]){plain}/?(?![\w./-])", ".", text)
    return text
