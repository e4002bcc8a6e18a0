"""The default condenser: first masks output of turns that changed nothing, then forgets turns, the
least important first. What was forgotten is summarized from the log."""

from collections.abc import Sequence

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase
from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.base import SizeBound
from resolver.memory.condensers.forgetting import (
    LEAST_SHARE,
    enough,
    forget,
    middle,
    old,
    room_for_facts,
)
from resolver.memory.condensers.masking import mask, maskable
from resolver.memory.condensers.summaries import Writer
from resolver.memory.condensers.view import CondenserView
from resolver.memory.outcomes import checks_in
from resolver.memory.turns import Turn
from resolver.security.shell.code import written_in
from resolver.security.shell.writes import written_paths

ORDINARY, FAILED, CHECKED, CHANGED = range(4)
"""Ranks of a turn: it only read or looked; something failed; it ran a check; it changed, planned or
decided something."""


class Importance:
    """Keeps the turns that matter most to the work.

    When the conversation exceeds the bound, output outside of the last `keep_last` turns is masked,
    except in turns of rank `CHANGED`. If that does not bring it down to half of the bound, turns
    between the first `keep_first` and the last `keep_last` are forgotten: the least important
    first, and of equally important ones the oldest first. If the model reports that the context is
    full, turns at both ends may be forgotten too, except the last one.

    The summary lists, from the log alone and as of now, the files changed, the last result of each
    check, the plan, questions with their answers, and the agent's own notes. The user's messages
    are never forgotten.

    writer: writes additional notes with a model; None for no such notes.
    """

    def __init__(
        self,
        bound: SizeBound,
        writer: Writer | None = None,
        keep_first: int = 2,
        keep_last: int = 12,
    ) -> None:
        self._bound = bound
        self._writer = writer
        self._first = keep_first
        self._last = keep_last

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if not self._bound.is_passed(view):
            return None
        target = self._bound.target(view)
        masked = self._mask_ordinary(view, target)
        after = view.after(masked) if masked else view
        if after.size <= target and masked:
            return masked
        candidates = by_importance(middle(after, self._first, self._last, target))
        turns = enough(after, candidates, target)
        if not turns:
            return masked
        notes = self._writer.write(view, turns) if self._writer else ""
        condensation = forget(after, turns, facts=room_for_facts(target), notes=notes)
        if masked is None or condensation is None:
            return condensation
        gone = set(condensation.forgotten)
        left = tuple(id for id in masked.masked if id not in gone)
        return condensation.model_copy(update={"masked": left})

    def _mask_ordinary(self, view: CondenserView, target: int) -> Condensation | None:
        """Mask as many results as needed, oldest first, of turns ranked below `CHANGED`.

        None if that saves too little.
        """
        turns = [t for t in old(view, self._last, target) if importance(t) < CHANGED]
        chosen: list[ObservationBase] = []
        freed = 0
        for result in maskable(view, turns):
            if view.size - freed <= target:
                break
            freed += view.freed_by_masking(result)
            chosen.append(result)
        worth = view.wanted or freed * LEAST_SHARE >= 2 * target
        return mask(chosen) if worth else None


def by_importance(turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns, the least important first; equally important ones keep their order."""
    return sorted(turns, key=importance)


def importance(turn: Turn) -> int:
    """Return the rank of the turn's most important action."""
    actions = ((action, turn.results.get(action.id)) for action in turn.actions)
    return max((_of_action(action, result) for action, result in actions), default=ORDINARY)


def _of_action(action: ActionBase, result: ObservationBase | None) -> int:
    match action, result:
        case _, o.FileEditResult() | o.FileWriteResult() | o.DelegateResult() | o.RecallResult():
            return CHANGED
        case a.PlanUpdate() | a.Think() | a.Finish() | a.Message(wait_for_response=True), _:
            return CHANGED
        case a.CmdRun(is_input=False, command=command), o.CmdOutput(exit_code=code):
            if written_paths(command):
                return CHANGED
            if checks_in(command):
                return CHECKED
            return FAILED if code else ORDINARY
        case a.IPythonRunCell(code=code), o.IPythonOutput() if written_in(code):
            return CHANGED
        case _, o.ErrorObservation() | o.IPythonOutput(error=True):
            return FAILED
        case _:
            return ORDINARY
