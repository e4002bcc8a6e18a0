"""The parts of a trace document besides its steps: phases, charts, limits and changed files."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from resolver.events.lifecycle import StageCompleted
from resolver.events.log import Event
from resolver.trace.plain import clean_diff, duration, money
from resolver.trace.view import Entry, TraceHeader, TraceStep

_PHASES = {
    "sandbox": "Set-up", "checkout": "Set-up", "setup": "Set-up", "change": "Verification",
    "branch": "Publication", "published": "Publication",
}  # fmt: skip
"""The phase that each stage belongs to. An entry of any other kind continues the current phase."""

CHART_WIDTH, CHART_HEIGHT = 300, 48
_MAX_POINTS = 150


@dataclass(frozen=True)
class Phase:
    """Successive entries of a trace. name: such as `Work`."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Chart:
    """A cumulative chart of an amount. points: of an SVG polyline. total: for display."""

    name: str
    total: str
    points: str


@dataclass(frozen=True)
class Meter:
    """The use of one limit of the run, drawn as a bar. text: for display. percent: at most 100.
    is_high: True if the limit is almost reached."""

    name: str
    text: str
    percent: int
    is_high: bool


HIGH_PERCENT = 90
"""Use of a limit from which on its bar is marked."""


def draw_meters(header: TraceHeader) -> tuple[Meter, ...]:
    """Return the use of each limit of the run; nothing without limits."""
    limits = header.limits
    if limits is None:
        return ()
    uses = (
        ("Iterations", f"{header.iterations} of {limits.max_iterations}",
         header.iterations, limits.max_iterations),
        ("Budget", f"{money(header.priced)} of {money(limits.max_budget)}",
         header.priced, limits.max_budget),
        ("Working time", f"{duration(header.seconds)} of {duration(limits.max_time)}",
         header.seconds, limits.max_time),
    )  # fmt: skip
    return tuple(_meter(name, text, _finite(used), limit) for name, text, used, limit in uses)


def _meter(name: str, text: str, used: float, limit: float) -> Meter:
    share = used / limit if limit > 0 and math.isfinite(limit) else 0.0
    percent = min(100, max(0, round(100 * share)))
    return Meter(name, text, percent, percent >= HIGH_PERCENT)


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


def draw_charts(entries: Sequence[Entry], seconds: float) -> tuple[Chart, ...]:
    """Return the charts of cost, tokens and time; without those that have nothing to show."""
    steps = [entry for entry in entries if isinstance(entry, TraceStep)]
    costs = list(accumulate(_finite(step.cost) for step in steps))
    times = [*(step.elapsed for step in steps[1:]), _finite(seconds)]
    tokens = list(accumulate(_tokens(step) for step in steps))
    charts = []
    if len(steps) > 1 and costs[-1] > 0:
        charts.append(Chart("Cost", money(costs[-1]), _points(costs)))
    if len(steps) > 1 and tokens[-1] > 0:
        charts.append(Chart("Tokens", f"{tokens[-1]:,}", _points(tokens)))
    if len(steps) > 1 and times[-1] > 0:
        charts.append(Chart("Time", duration(times[-1]), _points(times)))
    return tuple(charts)


def _tokens(step: TraceStep) -> int:
    return step.tokens.input + step.tokens.output if step.tokens else 0


def _finite(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) else 0.0


def _points(values: Sequence[float]) -> str:
    """Return the coordinates of a line, which starts at zero and ends at the top right."""
    chosen = [values[i] for i in range(0, len(values), -(-len(values) // _MAX_POINTS))]
    chosen = [0.0, *chosen, values[-1]]
    highest = max(chosen) or 1.0
    width = CHART_WIDTH / (len(chosen) - 1)
    return " ".join(
        f"{i * width:.1f},{CHART_HEIGHT - CHART_HEIGHT * max(value, 0.0) / highest:.1f}"
        for i, value in enumerate(chosen)
    )


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
