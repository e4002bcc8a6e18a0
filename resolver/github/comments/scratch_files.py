"""Detects new files that look like scratch work.

These are reproduction scripts, experiments, logs and copies that were left behind.
"""

import re
from typing import Final

from resolver.models.run import FileChange

_REPRODUCTION: Final = frozenset({"repro", "reproduce", "reproducer", "reproduction", "scratch"})
"""Words that mark scratch work anywhere in a path."""

_TRIAL: Final = frozenset(
    {
        "apply", "check", "debug", "demo", "experiment", "fix", "inspect", "modify", "patch",
        "temp", "test", "tmp", "trial", "try", "update", "verify",
    }
)  # fmt: skip
"""Words that mark scratch work at the start of a file name in the repository's root.

Agents put their scripts there, while projects keep scripts in a folder.
"""

_SUFFIXES: Final = (".bak", ".diff", ".log", ".orig", ".patch", ".rej", ".swp", ".tmp", "~")
_SCRIPTS: Final = (".c", ".js", ".mjs", ".php", ".pl", ".py", ".rb", ".rs", ".sh", ".ts", ".txt")


def looks_like_scratch(change: FileChange) -> bool:
    """Return True for a new file whose name and location suggest scratch work.

    This is a guess from the path: such files are listed separately, but never left out.
    """
    if change.status != "added":
        return False
    path = change.path.strip('"').lower()
    if path.endswith(_SUFFIXES) or not _REPRODUCTION.isdisjoint(re.findall(r"[a-z]+", path)):
        return True
    in_root = "/" not in path and path.endswith(_SCRIPTS)
    return in_root and re.split(r"[^a-z]", path, maxsplit=1)[0] in _TRIAL
