"""A condenser that keeps both ends of a conversation and summarizes the middle from the log."""

from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.base import SizeBound
from resolver.memory.condensers.forgetting import enough, forget, middle, room_for_facts
from resolver.memory.condensers.masking import mask, maskable
from resolver.memory.condensers.view import CondenserView


class ConversationWindow:
    """Forgets the oldest turns of the middle, always whole turns, until half of the bound is left.

    keep_first, keep_last: number of turns kept at both ends. Fewer are kept only if the model
        reports that the context is full. The last turn, the system prompt and the user's own
        messages are always kept, but the results of the last turn are masked if nothing else can
        be left out.
    only_asked: act only if the model reports that the context is full, and ignore the bound.
    """

    def __init__(
        self,
        bound: SizeBound,
        keep_first: int = 2,
        keep_last: int = 12,
        only_asked: bool = False,
    ) -> None:
        self._bound = bound
        self._first = keep_first
        self._last = keep_last
        self._only_asked = only_asked

    def condense(self, view: CondenserView) -> Condensation | None:
        """See `Condenser`."""
        if not view.wanted and (self._only_asked or not self._bound.is_passed(view)):
            return None
        target = self._bound.target(view)
        turns = enough(view, middle(view, self._first, self._last, target), target)
        if turns:
            return forget(view, turns, facts=room_for_facts(target))
        return mask(maskable(view, view.turns)) if view.wanted else None
