"""Paths in commands: which are outside of any repository, and how the rest is shown to people."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_OUTSIDE = ("/tmp", "/var/tmp", "/dev", "/proc", "/sys", "/run")  # noqa: S108 - nothing is made there


@dataclass(frozen=True)
class WrittenPaths:
    """Represents the files that a command may have written.

    paths: the paths as the command names them.
    unknown: other files may have been written, whose paths are not known.
    whole: the command is a single step that has written nothing if it failed.
    """

    paths: tuple[str, ...] = ()
    unknown: bool = False
    whole: bool = False

    def __bool__(self) -> bool:
        return self.unknown or bool(self.paths)


def is_outside(path: str, root: str = "") -> bool:
    """Return True if the path is outside of any repository: temporary files, devices.

    root: path of the repository, if known, which may itself be below such a folder.
    """
    plain = posixpath.normpath(path) if path.startswith("/") else ""
    if root and (plain == root or plain.startswith(f"{root}/")):
        return False
    return any(plain == each or plain.startswith(f"{each}/") for each in _OUTSIDE)


def of_paths(paths: Iterable[str], root: str = "", *, unknown: bool = False) -> WrittenPaths:
    """Return those of the paths that may be in a repository. A path that contains an expansion is
    not known, and counts as unknown."""
    kept = [path for path in paths if path and not is_outside(path, root)]
    known = tuple(dict.fromkeys(each for each in kept if not _is_made(each)))
    return WrittenPaths(known, unknown or len(known) < len(set(kept)))


def _is_made(path: str) -> bool:
    return "$" in path or "`" in path or path == "{}"


def relative_command(text: str, roots: Sequence[str]) -> str:
    """Return a command or a path as it would be written at the repository's root: without an
    initial `cd` into the repository, and with paths below it made relative.

    roots: paths of the repository in the sandboxes, which mean nothing to a reader.

    The result is for display only. If the shell was in another directory, it is another command.
    """
    for root in roots:
        plain = re.escape(root.rstrip("/"))
        if not plain:
            continue
        text = re.sub(rf"\A\s*cd\s+(['\"]?){plain}/?\1\s*(?:&&|;|\n)\s*(?=\S)", "", text)
        text = re.sub(rf"(?<![\w./-]){plain}/(?=[\w.*-])", "", text)
        text = re.sub(rf"(?<![\w./-]){plain}/?(?![\w./-])", ".", text)
    return text
