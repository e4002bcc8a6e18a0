"""The parts of a trace document besides its steps: phases and changed files."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from resolver.events.lifecycle import StageCompleted
from resolver.events.log import Event
from resolver.trace.plain import clean_diff
from resolver.trace.view import Entry, TraceStep

_PHASES = {
    "sandbox": "Set-up", "checkout": "Set-up", "setup": "Set-up", "change": "Verification",
    "branch": "Publication", "published": "Publication",
}  # fmt: skip
"""The phase that each stage belongs to. An entry of any other kind continues the current phase."""


@dataclass(frozen=True)
class Phase:
    """Successive entries of a trace. name: such as `Work`."""

    name: str
    entries: tuple[Entry, ...]


def split_phases(entries: Iterable[Entry]) -> list[Phase]:
    """Return the phases of a trace, which are Set-up, Work, Verification and Publication.

    Work may return after a verification, if the agent got the output of a failing check.
    """
    phases: list[tuple[str, list[Entry]]] = []
    for entry in entries:
        current = phases[-1][0] if phases else "Set-up"
        name = _phase_of(entry, current)
        if not phases or name != current:
            phases.append((name, []))
        phases[-1][1].append(entry)
    return [Phase(name, tuple(members)) for name, members in phases]


def _phase_of(entry: Entry, current: str) -> str:
    if isinstance(entry, TraceStep):
        # Skills and notes are loaded before the agent works.
        return current if entry.verb == "Load" else "Work"
    if entry.category == "check":
        return "Verification"
    if entry.category == "stage":
        return _PHASES.get(entry.text.split(" ")[0].rstrip(":"), current)
    return current


MAX_DIFF_LENGTH = 200_000
"""Maximum number of characters of a change that are shown; patch.diff has the rest."""

_FILE_START = re.compile(r"^(?=diff --git )", re.MULTILINE)


@dataclass(frozen=True)
class FileDiff:
    """The diff of one file.

    lines: those of the hunks, or those that describe a change without hunks, as of a binary file.
    size: numbers of added and deleted lines, for display.
    has_hunks: False if `lines` are a description.
    """

    path: str
    size: str
    lines: tuple[str, ...]
    has_hunks: bool


def split_diff(diff: str) -> list[FileDiff]:
    """Return the files of a change as `git diff` prints it, cleaned; a long diff is truncated."""
    parts = _FILE_START.split(clean_diff(diff[:MAX_DIFF_LENGTH]))
    return [_file_diff(part) for part in parts if part.startswith("diff --git ")]


def _file_diff(part: str) -> FileDiff:
    lines = part.rstrip("\n").split("\n")
    names = [line[4:].removeprefix("b/") for line in lines if line.startswith("+++ b/")]
    path = names[0] if names else lines[0].rpartition(" b/")[2]
    start = next((i for i, line in enumerate(lines) if line.startswith("@@")), len(lines))
    # The lines above the first hunk say little but the path, which the title has.
    has_hunks = start < len(lines)
    shown = lines[start:] if has_hunks else lines[1:]
    added = sum(line.startswith("+") for line in lines[start:])
    deleted = sum(line.startswith("-") for line in lines[start:])
    return FileDiff(path, f"+{added} \u2212{deleted}", tuple(shown), has_hunks)


def has_exported_change(events: Sequence[Event]) -> bool:
    """Return True if the run took a change out of its sandbox."""
    return any(isinstance(event, StageCompleted) and event.stage == "change" for event in events)
