"""Keeps both ends of a conversation, and says from the log what the middle came to."""

from resolver.events.lifecycle import Condensation
from resolver.memory.condensers.base import SizeBound
from resolver.memory.condensers.forgetting import enough, forget, middle, room_for_facts
from resolver.memory.condensers.masking import mask, maskable
from resolver.memory.condensers.view import CondenserView


class ConversationWindow:
    """Forgets the oldest turns of the middle, whole, until half of the bound is left.

    keep_first, keep_last: turns at both ends that stay. Only a model that says that the context is
    full makes it go below them; the last turn, the system prompt and the user's own words always
    stay, but what the last turn gave is masked when nothing else can go.

    only_asked: it acts on a model that says so, and not on the bound.
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
