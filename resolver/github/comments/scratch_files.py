"""Tells which new files of a change look like scratch work: scripts that reproduce an issue or try
something out, logs and copies that somebody forgot to remove."""

import re
from typing import Final

from resolver.models.run import FileChange

_REPRODUCTION: Final = frozenset({"repro", "reproduce", "reproducer", "reproduction", "scratch"})
"""Words that name scratch work in any part of a path."""

_TRIAL: Final = frozenset(
    {
        "apply", "check", "debug", "demo", "experiment", "fix", "inspect", "modify", "patch",
        "temp", "test", "tmp", "trial", "try", "update", "verify",
    }
)  # fmt: skip
"""Words that name it where a file in the repository's root begins with them: agents write their
scripts there, projects keep theirs in a folder."""

_SUFFIXES: Final = (".bak", ".diff", ".log", ".orig", ".patch", ".rej", ".swp", ".tmp", "~")
_SCRIPTS: Final = (".c", ".js", ".mjs", ".php", ".pl", ".py", ".rb", ".rs", ".sh", ".ts", ".txt")


def looks_like_scratch(change: FileChange) -> bool:
    """Return True for a new file whose name and place are those of scratch work.

    It is a guess from the name alone: such files are shown apart, and never left out for it.
    """
    if change.status != "added":
        return False
    path = change.path.strip('"').lower()
    if path.endswith(_SUFFIXES) or not _REPRODUCTION.isdisjoint(re.findall(r"[a-z]+", path)):
        return True
    in_root = "/" not in path and path.endswith(_SCRIPTS)
    return in_root and re.split(r"[^a-z]", path, maxsplit=1)[0] in _TRIAL
