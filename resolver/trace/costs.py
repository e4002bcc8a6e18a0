"""Describes the cost of a run by model and by service."""

from collections.abc import Mapping

from resolver.events.state import ModelMetrics, State
from resolver.trace.plain import money, one_line, plural


def cost_parts(state: State) -> tuple[str, ...]:
    """Return one line per model and one per service, where there are several; else none."""
    return (*_lines(state.metrics), *_lines(state.services))


def _lines(metrics: Mapping[str, ModelMetrics]) -> tuple[str, ...]:
    if len(metrics) < 2:
        return ()
    return tuple(f"{one_line(name)}: {_told(each)}" for name, each in metrics.items())


def _told(metrics: ModelMetrics) -> str:
    cost = money(metrics.priced if not metrics.unpriced or metrics.priced else None)
    least = "at least " if metrics.unpriced and metrics.priced else ""
    replies = f"{metrics.calls:,} {'reply' if metrics.calls == 1 else 'replies'}"
    return f"{least}{cost} for {replies}, {plural(metrics.tokens.output, 'token')} out"
