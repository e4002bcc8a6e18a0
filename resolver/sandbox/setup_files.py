"""Handles the files that the set-up of an environment leaves in the repository's folder.

They are kept out of the change, and they stay when a sandbox is started from a saved environment.
This runs inside the sandbox, with the standard library and the toolbox's git.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence

from .generated import escape_glob
from .wire import SettleResult

MOST_NAMED = 100
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
        restored=[name.decode("utf-8", "replace") for name in changed[:MOST_NAMED]],
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
