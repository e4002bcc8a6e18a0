"""Runs several condensers in a row and merges their results into one event."""

from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.base import Condenser
from resolver.memory.condensers.view import CondenserView


class Pipeline:
    """A condenser made of stages, each of which sees what the stages before it leave."""

    def __init__(self, *stages: Condenser) -> None:
        self._stages = stages

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        whole: Condensation | None = None
        for stage in self._stages:
            part = stage.condense(view)
            if part is not None:
                view = view.after(part)
                whole = _both(whole, part) if whole else part
        return whole


def _both(first: Condensation, second: Condensation) -> Condensation:
    forgotten = set(first.forgotten) | set(second.forgotten)
    told = second if second.forgotten else first
    return Condensation(
        forgotten=tuple(sorted(forgotten)),
        masked=tuple(sorted({*first.masked, *second.masked} - forgotten)),
        summary=told.summary,
        notes=told.notes,
    )
