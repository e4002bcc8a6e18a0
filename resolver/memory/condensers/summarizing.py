"""A condenser that keeps a window and summarizes the rest with a model, in addition to the facts
from the log."""

from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.base import SizeBound
from resolver.memory.condensers.forgetting import enough, forget, middle, room_for_facts
from resolver.memory.condensers.model_call import Asker
from resolver.memory.condensers.summaries import FieldNotes, FreeNotes, Writer
from resolver.memory.condensers.view import CondenserView


class LLMSummarizing:
    """Works like `ConversationWindow` and adds notes of the condenser's model to the summary.

    If the model fails, the summary has the facts from the log and the notes written so far.
    """

    def __init__(
        self, bound: SizeBound, asker: Asker, keep_first: int = 2, keep_last: int = 12
    ) -> None:
        self._bound = bound
        self._writer: Writer = FreeNotes(asker)
        self._first = keep_first
        self._last = keep_last

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if not self._bound.is_passed(view):
            return None
        target = self._bound.target(view)
        turns = enough(view, middle(view, self._first, self._last, target), target)
        if not turns:
            return None
        notes = self._writer.write(view, turns)
        return forget(view, turns, facts=room_for_facts(target), notes=notes)


class StructuredSummary(LLMSummarizing):
    """The same with notes in fields: findings, decisions and next steps have a place each."""

    def __init__(
        self, bound: SizeBound, asker: Asker, keep_first: int = 2, keep_last: int = 12
    ) -> None:
        super().__init__(bound, asker, keep_first, keep_last)
        self._writer = FieldNotes(asker)
