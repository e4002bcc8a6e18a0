"""Divides a trace into phases and draws how cost and time add up over its steps."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from resolver.trace.plain import duration, money
from resolver.trace.view import Entry, TraceStep

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
    if entry.sort == "check":
        return "Verification"
    if entry.sort == "stage":
        return _PHASES.get(entry.text.split(" ")[0].rstrip(":"), current)
    return current


def draw_charts(entries: Sequence[Entry], seconds: float) -> tuple[Chart, ...]:
    """Return the charts of cost and time; without those that have nothing to show."""
    steps = [entry for entry in entries if isinstance(entry, TraceStep)]
    costs = list(accumulate(_finite(step.cost) for step in steps))
    times = [*(step.elapsed for step in steps[1:]), _finite(seconds)]
    charts = []
    if len(steps) > 1 and costs[-1] > 0:
        charts.append(Chart("Cost", money(costs[-1]), _points(costs)))
    if len(steps) > 1 and times[-1] > 0:
        charts.append(Chart("Time", duration(times[-1]), _points(times)))
    return tuple(charts)


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
